/** Reveal curves of one slide: every stored order, the random band, and marks at its counts. */

import { type Ink, inkOf } from "../charts/ink";
import { type Chart, chartOf } from "../charts/lineChart";
import { type Line, type LineChart, type Mark, plotEdges } from "../charts/lines";
import { fixed } from "../page/format";
import type { AuditPayload } from "../page/payload";
import type { SlideData } from "./data";

export interface SlideCurves {
  chart: Chart;
  /** Distances from the edges of the chart to its plot area, for the slider below it. */
  edges: { left: number; right: number };
  /** Mark the first and the stable count of these columns on the axis. */
  mark(columns: string[]): void;
}

export function slideCurves(
  payload: AuditPayload,
  data: SlideData,
  target: string,
  pick: (index: number) => void,
): SlideCurves {
  const rankings = payload.rankings.map((r) => r.name);
  const ink = (column: string): Ink =>
    inkOf(payload.rankings.find((r) => r.columns.includes(column))!.name, rankings);
  const isFirst = (column: string) => payload.rankings.some((r) => r.columns[0] === column);
  // Only the first seed of a ranking has markers; the others are thinner.
  const thin = (look: Ink): Ink => ({ ...look, width: 1.25, marker: "none" });
  const lines: Line[] = data.columns.map((name) => ({
    name,
    ink: isFirst(name) ? ink(name) : thin(ink(name)),
    y: data.curve[name],
  }));
  if (data.random) {
    const look = inkOf("random", rankings);
    lines.push({ name: "random", ink: look, y: data.random.mean, band: data.random });
  }
  const spec: LineChart = {
    xLabel: "tiles revealed, K",
    yLabel: `probability of ${target}`,
    x: data.ks,
    lines,
    yRange: [0, 1],
    logX: data.ks.length > 1,
    levels: [
      { y: payload.kappa, label: `κ = ${payload.kappa}` },
      { y: data.full, label: `all ${fixed(data.full)}` },
    ],
    height: 280,
    description: `Reveal curves of this slide; all tiles together give ${fixed(data.full)}`,
    onPick: pick,
  };
  const chart = chartOf(spec, "K");
  const markAt = (name: string, k: number | null, hollow: boolean): Mark[] => {
    const i = k === null ? -1 : data.ks.indexOf(k);
    return i < 0 ? [] : [{ x: data.ks[i], y: data.curve[name][i], ink: ink(name), hollow }];
  };
  return {
    chart,
    edges: plotEdges(spec),
    mark(columns) {
      spec.marks = [...new Set(columns)].flatMap((name) => [
        ...(data.stable[name] === data.msk[name] ? [] : markAt(name, data.stable[name], true)),
        ...markAt(name, data.msk[name], false),
      ]);
      chart.drawn.draw(spec);
    },
  };
}
