/** Line chart by uPlot: axes, dashes, markers, bands, and a cursor that other code can move. */

import uPlot from "uplot";
import { h } from "../page/dom";
import { colour } from "../page/theme";
import { decorate } from "./annotations";
import { type Ink, shade, stroke } from "./ink";
import { onResize } from "./resize";
import { canvasPerPlotPixel, sharpen } from "./sharp";
import { linearTicks, powersOfTwo } from "./ticks";

export interface Line {
  name: string;
  ink: Ink;
  y: (number | null)[];
  band?: { low: (number | null)[]; high: (number | null)[] };
  hidden?: boolean;
}

export interface Mark {
  x: number;
  y: number;
  ink: Ink;
  hollow?: boolean;
  /** Written beside it; a mark that says something is a ring at its point. */
  says?: string;
}

/** A horizontal line across the chart, with its name at the right. */
export interface Level {
  y: number;
  label: string;
}

export interface LineChart {
  xLabel: string;
  yLabel: string;
  x: number[];
  lines: Line[];
  yRange?: [number, number];
  logX?: boolean;
  stepped?: boolean;
  levels?: Level[];
  marks?: Mark[];
  height?: number;
  description: string;
  onHover?: (index: number | null) => void;
  onPick?: (index: number) => void;
}

/** Distances in pixels from the edges of a chart to its plot area. */
export function plotEdges(chart: Pick<LineChart, "levels">): { left: number; right: number } {
  return { left: AXIS.size + AXIS.labelSize, right: chart.levels?.length ? 62 : 14 };
}

export interface DrawnLines {
  element: HTMLElement;
  setCursor(index: number | null): void;
  draw(chart: LineChart): void;
}

export function drawLines(first: LineChart): DrawnLines {
  const element = h("div", { class: "chart", role: "img", "aria-label": first.description });
  const cursor = h("div", { class: "cursor-line", hidden: true });
  let chart = first;
  let plot: uPlot | null = null;
  let at: number | null = null;

  const place = () => {
    cursor.hidden = at === null || plot === null;
    if (at === null || plot === null) return;
    cursor.dataset.k = String(chart.x[at]);
    cursor.style.left = `${plot.valToPos(chart.x[at], "x")}px`;
  };
  const build = () => {
    plot?.destroy();
    const width = element.clientWidth;
    if (width === 0) return;
    plot = new uPlot(options(chart, width, place), data(chart), element);
    plot.over.append(cursor);
    plot.over.addEventListener("click", () => {
      const index = plot?.cursor.idx;
      if (index != null) chart.onPick?.(index);
    });
  };
  onResize(element, build);

  return {
    element,
    setCursor(index) {
      at = index;
      place();
    },
    draw(next) {
      chart = next;
      element.setAttribute("aria-label", next.description);
      build();
    },
  };
}

/** One array per series, as uPlot expects; a band adds two invisible series. */
function data(chart: LineChart): uPlot.AlignedData {
  const columns: (number | null)[][] = [chart.x];
  for (const line of chart.lines) if (line.band) columns.push(line.band.low, line.band.high);
  for (const line of chart.lines) columns.push(line.y);
  return columns as uPlot.AlignedData;
}

function options(chart: LineChart, width: number, drawn: () => void): uPlot.Options {
  // uPlot counts dashes and rounds positions in its own pixels; we want both in canvas pixels.
  const pixel = 1 / canvasPerPlotPixel();
  const banded = chart.lines.filter((line) => line.band);
  const bands: uPlot.Band[] = banded.map((line, i) => ({
    series: [2 + 2 * i, 1 + 2 * i],
    fill: shade(line.ink),
  }));
  const paths = chart.stepped ? uPlot.paths.stepped!({ align: 1 }) : undefined;
  const edges: uPlot.Series[] = banded.flatMap((line) =>
    [0, 1].map(() => ({ show: !line.hidden, width: 0, points: { show: false }, paths })),
  );
  const lines: uPlot.Series[] = chart.lines.map((line) => ({
    show: !line.hidden,
    stroke: stroke(line.ink),
    width: line.ink.width,
    dash: line.ink.dash.map((length) => length * pixel),
    points: { show: false },
    paths,
    spanGaps: false,
  }));
  const last = chart.x[chart.x.length - 1];
  const axis = (label: string): uPlot.Axis => ({
    label,
    labelFont: FONT,
    font: FONT,
    stroke: colour("--text"),
    grid: { stroke: colour("--grid"), width: 1 },
    ticks: { stroke: colour("--grid"), width: 1, size: 5 },
  });
  return {
    width,
    height: chart.height ?? 300,
    pxAlign: pixel,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
    scales: {
      x: {
        time: false,
        distr: chart.logX ? 3 : 1,
        log: 2,
        range: () => [
          chart.logX ? Math.max(chart.x[0], 1) : Math.min(chart.x[0], 1),
          Math.max(last, 2),
        ],
      },
      y: { range: chart.yRange ? () => chart.yRange! : undefined },
    },
    series: [{}, ...edges, ...lines],
    bands,
    axes: [
      {
        ...axis(chart.xLabel),
        size: 34,
        labelSize: 22,
        splits: () => (chart.logX ? powersOfTwo(last) : linearTicks(chart.x[0], last, width)),
        filter: (_u, splits) => splits,
        values: (_u, splits) => splits.map(String),
      },
      {
        ...axis(chart.yLabel),
        ...AXIS,
        values: (_u, splits) => splits.map((v) => String(+v.toFixed(3)).replace("-", "−")),
      },
    ],
    padding: [10, plotEdges(chart).right, 0, 0],
    hooks: {
      setSize: [sharpen],
      draw: [(plot) => decorate(plot, chart), drawn],
      setCursor: [
        (plot) =>
          chart.onHover?.(
            plot.cursor.left != null && plot.cursor.left >= 0 ? (plot.cursor.idx ?? null) : null,
          ),
      ],
    },
  };
}

const FONT = "12px system-ui, sans-serif";
const AXIS = { size: 46, labelSize: 22 };
