/** Figures that compare audits: tiles needed, slides recovered, tiles saved, and AUC beside them. */

import { forest, type ForestRow } from "../charts/forest";
import { inkOf } from "../charts/ink";
import { table } from "../page/dom";
import { fixed, interval, percent } from "../page/format";
import type { ComparedAudit, ComparisonPayload, Interval } from "../page/payload";
import { figure } from "./figure";
import { pointsOf } from "./points";
import { drawScatter, shapeLegend } from "./scatter";

export function comparisonFigures(payload: ComparisonPayload): HTMLElement[] {
  const figures = [
    tilesFigure(payload),
    reachFigure(payload),
    savedFigure(payload),
    scatterFigure(payload),
  ];
  return figures.filter((figure) => figure !== null);
}

/** One group of rows per audit, named after its model; one row per ranking. */
function byRanking(
  { audits, rankings }: ComparisonPayload,
  of: (audit: ComparedAudit, ranking: string) => Interval | undefined,
  text: (value: Interval) => string,
): { name: string; rows: ForestRow[] }[] {
  return audits.map((audit) => ({
    name: `${audit.name} (n = ${audit.n_slides})`,
    rows: rankings.flatMap((name) => {
      const value = of(audit, name);
      if (value?.estimate == null) return [];
      const { estimate, low, high } = value;
      return [{ name, ink: inkOf(name, rankings), value: estimate, low, high, text: text(value) }];
    }),
  }));
}

function tilesFigure(payload: ComparisonPayload): HTMLElement {
  const { audits, rankings } = payload;
  const ends = audits.flatMap((audit) =>
    Object.values(audit.restricted).flatMap((i) => [i.estimate, i.high ?? 0]),
  );
  return figure({
    title: "Tiles needed",
    caption:
      "Mean over all slides with its interval over patients (restricted mean K); a slide that never gets to κ counts as the largest count of its audit. n: slides.",
    body: [
      forest({
        groups: byRanking(payload, (audit, name) => audit.restricted[name], interval),
        range: [0, Math.max(...ends, 1) * 1.03],
        xLabel: "tiles needed, mean",
        tick: (value) => fixed(value, 0),
        description: "Tiles needed per model and ranking, with intervals",
      }),
    ],
    numbers: table(
      ["model", ...rankings],
      audits.map((a) => [a.name, ...rankings.map((name) => interval(a.restricted[name]))]),
    ),
  });
}

function reachFigure(payload: ComparisonPayload): HTMLElement {
  const { audits, rankings } = payload;
  const text = (value: Interval | undefined) => {
    const ends =
      value?.low == null || value.high == null
        ? ""
        : ` (${fixed(100 * value.low, 0)} to ${percent(value.high)})`;
    return percent(value?.estimate) + ends;
  };
  return figure({
    title: "Slides recovered",
    caption:
      "Share of slides on which the first tiles get to κ (Reach), with its interval over patients. A model that has decided few slides can recover few. n: slides.",
    body: [
      forest({
        groups: byRanking(payload, (audit, name) => audit.reach[name], text),
        range: [0, 1],
        xLabel: "share of slides",
        tick: percent,
        description: "Share of slides recovered per model and ranking, with intervals",
      }),
    ],
    numbers: table(
      ["model", ...rankings],
      audits.map((a) => [a.name, ...rankings.map((name) => text(a.reach[name]))]),
    ),
  });
}

function savedFigure(payload: ComparisonPayload): HTMLElement | null {
  const { audits } = payload;
  const kinds = [
    { name: "against the map", of: (audit: ComparedAudit) => audit.shi_native },
    { name: "against random orders", of: (audit: ComparedAudit) => audit.shi_random },
  ];
  const groups = kinds.map(({ name, of }) => ({
    name,
    rows: audits.flatMap((audit) => {
      const value = of(audit);
      if (value?.estimate == null) return [];
      const { estimate, low, high } = value;
      const ink = inkOf("selector", payload.rankings);
      return [{ name: audit.name, ink, value: estimate, low, high, text: interval(value, 2) }];
    }),
  }));
  const values = groups.flatMap((g) => g.rows.flatMap((r) => [r.value, r.low ?? 0, r.high ?? 0]));
  if (!values.length) return null;
  return figure({
    title: "Tiles saved by the selector",
    caption:
      "Share of tiles saved (Selection Headroom Index) with its interval over patients, on the slides that each ranking recovers. Below 0 the selector needs more.",
    body: [
      forest({
        groups: groups.filter((group) => group.rows.length),
        range: [Math.min(0, ...values), Math.max(1, ...values)],
        xLabel: "tiles saved (SHI)",
        tick: (value) => fixed(value, 1),
        description: "Tiles saved by the selector per model, with intervals",
      }),
    ],
    numbers: table(
      ["model", ...kinds.map((kind) => kind.name)],
      audits.map((audit) => [audit.name, ...kinds.map((kind) => interval(kind.of(audit), 2))]),
    ),
  });
}

function scatterFigure(payload: ComparisonPayload): HTMLElement | null {
  const points = pointsOf(payload.audits, "shi_native");
  if (!points.length) return null;
  const missing = payload.audits.length - points.length;
  return figure({
    title: "AUC and tiles saved",
    caption:
      "Each model by its AUC with all tiles and the share of tiles that the selector saves against the map (SHI), with its interval." +
      (missing
        ? ` ${missing} of ${payload.audits.length} audits have no AUC or no SHI and are not drawn.`
        : ""),
    body: [shapeLegend(points), drawScatter(points, "tiles saved against the map (SHI)")],
    numbers: table(
      ["model", "AUC", "SHI"],
      points.map((p) => [p.audit.name, fixed(p.x), interval(p.y, 2)]),
    ),
  });
}
