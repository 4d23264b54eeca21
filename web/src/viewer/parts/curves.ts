/** Reveal and deletion curves of two rankings on one slide, with chance and the whole slide. */

import { onAxis, unionOfCounts, valueAt } from "../../charts/align";
import { type Ink, inkOf } from "../../charts/ink";
import { type Chart, chartOf } from "../../charts/lineChart";
import { type Line, type LineChart, type Mark, plotEdges } from "../../charts/lines";
import { fixed } from "../../page/format";
import { flipAt, type OpenSlide } from "../openSlide";
import type { ViewerCohort } from "../types.generated";

export interface PairCurves {
  chart: Chart;
  /** Distances from the edges of the chart to its plot area, for the slider below it. */
  edges: { left: number; right: number };
  /** Show a count of the slide's own list. */
  setCursor(k: number): void;
}

export function pairCurves(
  cohort: ViewerCohort,
  slide: OpenSlide,
  pair: [string, string],
  pick: (k: number) => void,
): PairCurves {
  const { data } = slide;
  const { full } = data;
  const { rankings, kappa } = cohort.audit;
  const names = rankings.map((r) => r.name);
  const last = data.ks[data.ks.length - 1];
  const deletions = pair.map((name) => slide.deletions[name] ?? null);
  const counts = deletions.map((one) => one?.ks.filter((k) => k >= 1 && k <= last) ?? []);
  const x = unionOfCounts([data.ks, ...counts]);
  const owner = (column: string) => rankings.find((r) => r.columns.includes(column))!.name;
  const inks = pair.map((column) => inkOf(owner(column), names));
  // Two seeds of one ranking share its colour: the second is dashed more finely.
  if (inks[0].index === inks[1].index)
    inks[1] = { ...inks[1], dash: [4, 3], marker: "square", width: 1.75 };
  const columns = pair[0] === pair[1] ? [0] : [0, 1];
  // Removal decides: its lines are the strong ones.
  const strong = (ink: Ink): Ink => ({ ...ink, width: 2.75, dash: [], marker: "none" });
  const thin = (ink: Ink): Ink => ({ ...ink, width: 1.25, dash: [5, 3], marker: "none" });
  const lines: Line[] = columns.map((i) => ({
    name: `${LETTERS[i]} ${pair[i]}: keep`,
    ink: thin(inks[i]),
    y: onAxis(x, data.ks, data.curve[pair[i]]).map((y, j) =>
      y === null ? valueAt(data.ks, data.curve[pair[i]], x[j]) : y,
    ),
  }));
  for (const i of columns) {
    const deleted = deletions[i];
    if (!deleted || deleted.ks.length < 2) continue;
    const reach = deleted.ks[deleted.ks.length - 1];
    const y = x.map((k) => (k > reach ? null : valueAt(deleted.ks, deleted.p, k)));
    lines.push({ name: `${LETTERS[i]} ${pair[i]}: remove`, ink: strong(inks[i]), y });
  }
  if (data.random) {
    const at = (values: number[]) => x.map((k) => valueAt(data.ks, values, k));
    const { low, mean, high } = data.random;
    lines.push({
      name: "random tiles: keep",
      ink: inkOf("random", names),
      y: at(mean),
      band: { low: at(low), high: at(high) },
    });
  }
  const markAt = (i: number, k: number | null, hollow: boolean): Mark[] => {
    const y = k === null ? null : valueAt(data.ks, data.curve[pair[i]], k);
    return k === null || y === null ? [] : [{ x: k, y, ink: inks[i], hollow }];
  };
  const marks = columns.flatMap((i) => {
    const [first, stable] = [data.msk[pair[i]], data.stable[pair[i]]];
    const flip = flipAt(slide, pair[i]);
    const fallen = flip === null ? null : valueAt(deletions[i]!.ks, deletions[i]!.p, flip);
    return [
      ...(first === stable ? [] : markAt(i, stable, true)),
      ...markAt(i, first, false),
      ...(flip === null || fallen === null
        ? []
        : [{ x: flip, y: fallen, ink: inks[i], hollow: false }]),
    ];
  });
  const spec: LineChart = {
    xLabel: "tiles, K",
    yLabel: `p of ${slide.predicted}`,
    x,
    lines,
    marks,
    yRange: [0, 1],
    logX: x.length > 1,
    levels: [
      { y: kappa, label: `κ = ${kappa}` },
      { y: full, label: `all ${fixed(full)}` },
    ],
    height: 230,
    description:
      `Probability of ${slide.predicted} over K: with only the first K tiles (keep) and without ` +
      `them (remove), for ${pair.join(" and ")}; ${fixed(full)} from all tiles`,
    onPick: (index) => pick(x[index]),
  };
  const chart = chartOf(spec, "K");
  return {
    chart,
    edges: plotEdges(spec),
    setCursor(k) {
      chart.drawn.setCursor(x.indexOf(k));
    },
  };
}

const LETTERS = ["A", "B"];
