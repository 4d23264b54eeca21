/** Keep and remove curves of two orders on one slide, with chance, the whole slide and the flip. */

import { onAxis, unionOfCounts, valueAt } from "../charts/align";
import { type Ink, inkOf } from "../charts/ink";
import { type Chart, chartOf } from "../charts/lineChart";
import { type Line, type LineChart, type Mark, plotEdges } from "../charts/lines";
import { fixed } from "../page/format";
import type { AuditPayload } from "../page/payload";
import type { SlideData } from "./data";

/** A slide without the first tiles of an order, and the count at which the decision flips. */
export interface Removed {
  ks: number[];
  p: number[];
  flip: number | null;
}

export interface PairCurves {
  chart: Chart;
  /** Distances from the edges of the chart to its plot area, for the slider below it. */
  edges: { left: number; right: number };
  /** Show a count of the slide's own list. */
  setCursor(k: number): void;
}

/** `names`: what the two columns of the pair are called. */
export function pairCurves(
  { rankings, kappa }: AuditPayload,
  data: SlideData,
  removed: Record<string, Removed>,
  pair: [string, string],
  names: [string, string],
  predicted: string,
  pick: (k: number) => void,
): PairCurves {
  const { full } = data;
  const last = data.ks[data.ks.length - 1];
  const gone = pair.map((column) => removed[column] ?? null);
  const counts = gone.map((one) => one?.ks.filter((k) => k >= 1 && k <= last) ?? []);
  const x = unionOfCounts([data.ks, ...counts]);
  const owner = (column: string) => rankings.find((r) => r.columns.includes(column))!.name;
  const inks = pair.map((column) => inkOf(owner(column)));
  // Two seeds of one ranking share its colour: the second is dashed more finely.
  if (inks[0].index === inks[1].index)
    inks[1] = { ...inks[1], dash: [4, 3], marker: "square", width: 1.75 };
  const columns = pair[0] === pair[1] ? [0] : [0, 1];
  // Removal decides: its lines are the strong ones.
  const strong = (ink: Ink): Ink => ({ ...ink, width: 2.75, dash: [], marker: "none" });
  const thin = (ink: Ink): Ink => ({ ...ink, width: 1.25, dash: [5, 3], marker: "none" });
  const lines: Line[] = columns.map((i) => ({
    name: `${names[i]}: keep`,
    ink: thin(inks[i]),
    y: onAxis(x, data.ks, data.curve[pair[i]]).map((y, j) =>
      y === null ? valueAt(data.ks, data.curve[pair[i]], x[j]) : y,
    ),
  }));
  for (const i of columns) {
    const one = gone[i];
    if (!one || one.ks.length < 2) continue;
    const reach = one.ks[one.ks.length - 1];
    const y = x.map((k) => (k > reach ? null : valueAt(one.ks, one.p, k)));
    lines.push({ name: `${names[i]}: remove`, ink: strong(inks[i]), y });
  }
  if (data.random) {
    const at = (values: number[]) => x.map((k) => valueAt(data.ks, values, k));
    const { low, mean, high } = data.random;
    lines.push({
      name: "random tiles: keep",
      ink: inkOf("random"),
      y: at(mean),
      band: { low: at(low), high: at(high) },
    });
  }
  const markAt = (i: number, k: number | null, hollow: boolean): Mark[] => {
    const y = k === null ? null : valueAt(data.ks, data.curve[pair[i]], k);
    return k === null || y === null ? [] : [{ x: k, y, ink: inks[i], hollow }];
  };
  // Two flips close to each other share their words.
  const [mine, other] = gone.map((one) => one?.flip ?? null);
  const near = mine !== null && other !== null && Math.abs(Math.log2(mine / other)) < 2;
  const marks = columns.flatMap((i) => {
    const [first, stable] = [data.msk[pair[i]], data.stable[pair[i]]];
    const flip = gone[i]?.flip ?? null;
    const fallen = flip === null ? null : valueAt(gone[i]!.ks, gone[i]!.p, flip);
    const flips: Mark[] =
      flip === null || fallen === null
        ? []
        : [{ x: flip, y: fallen, ink: inks[i], says: i && near ? "" : "flips here" }];
    return [
      ...(first === stable ? [] : markAt(i, stable, true)),
      ...markAt(i, first, false),
      ...flips,
    ];
  });
  const spec: LineChart = {
    xLabel: "tiles, K",
    yLabel: `p of ${predicted}`,
    x,
    lines,
    marks,
    yRange: [0, 1],
    logX: x.length > 1,
    levels: [
      { y: kappa, label: `sure ${kappa}` },
      { y: full, label: `all ${fixed(full)}` },
    ],
    height: 250,
    description:
      `Probability of ${predicted} over K: with only the first K tiles (keep) and without ` +
      `them (remove), for ${names.join(" and ")}; ${fixed(full)} from all tiles`,
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
