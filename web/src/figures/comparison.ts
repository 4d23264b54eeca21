/** Figures that compare audits: AUC against headroom, and tiles needed. */

import { barLegend, drawBars } from "../charts/bars";
import { inkOf } from "../charts/ink";
import { table } from "../page/dom";
import { fixed, interval, tiles } from "../page/format";
import type { ComparisonPayload } from "../page/payload";
import { figure } from "./figure";
import { pointsOf } from "./points";
import { drawScatter, shapeLegend } from "./scatter";

export function comparisonFigures(payload: ComparisonPayload): HTMLElement[] {
  const figures = [
    scatterFigure(payload, "shi_native", "native ranking"),
    scatterFigure(payload, "shi_random", "random order"),
    tilesFigure(payload),
  ];
  return figures.filter((figure) => figure !== null);
}

function scatterFigure(
  payload: ComparisonPayload,
  which: "shi_native" | "shi_random",
  base: string,
): HTMLElement | null {
  const points = pointsOf(payload.audits, which);
  if (!points.length) return null;
  const missing = payload.audits.length - points.length;
  return figure({
    title: `AUC and headroom against the ${base}`,
    caption:
      "Selection Headroom Index with its interval. Above 0 the selector needs fewer tiles, on the slides that each ranking reaches. Numbers are rows of the table." +
      (missing
        ? ` ${missing} of ${payload.audits.length} audits have no AUC or no SHI and are not drawn.`
        : ""),
    body: [shapeLegend(points), drawScatter(points, `SHI against the ${base}`)],
    numbers: table(
      ["audit", "AUC", "SHI"],
      points.map((p) => [`${p.number} ${p.audit.name}`, fixed(p.x), interval(p.y, 2)]),
    ),
  });
}

function tilesFigure(payload: ComparisonPayload): HTMLElement {
  const { audits, rankings } = payload;
  const ink = (name: string) => inkOf(name, rankings);
  const ends = audits.flatMap((a) =>
    Object.values(a.restricted).flatMap((i) => [i.estimate ?? 0, i.high ?? 0]),
  );
  const top = Math.max(...ends, 1);
  const groups = audits.map((audit, i) => ({
    name: String(i + 1),
    bars: rankings
      .filter((name) => audit.restricted[name])
      .map((name) => {
        const value = audit.restricted[name];
        return {
          ink: ink(name),
          value: value.estimate,
          low: value.low,
          high: value.high,
          label: `${audit.name}, ${name}: ${interval(value)} tiles`,
        };
      }),
  }));
  return figure({
    title: "Tiles needed",
    caption:
      "Restricted mean K with its interval, prediction view; a slide that never reaches counts as the largest count of its audit. Groups are rows of the table.",
    body: [
      barLegend(rankings, ink),
      drawBars({
        groups,
        range: [0, top * 1.05],
        xLabel: "audit",
        yLabel: "restricted mean K (tiles)",
        yText: tiles,
        width: 1072,
        description: "Bars of the restricted mean number of tiles per audit and ranking",
      }),
    ],
    numbers: table(
      ["audit", ...rankings],
      audits.map((a, i) => [
        `${i + 1} ${a.name}`,
        ...rankings.map((name) => interval(a.restricted[name])),
      ]),
    ),
    wide: true,
  });
}
