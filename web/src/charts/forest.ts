/** Forest plot: a row per estimate with its interval, rows in named groups. */

import { s } from "../page/dom";
import { type Ink, svgMarker } from "./ink";
import { drawnToWidth } from "./resize";
import { scaleTicks } from "./ticks";

export interface ForestRow {
  name: string;
  ink: Ink;
  value: number;
  low: number | null;
  high: number | null;
  /** The value with its interval, as shown at the right. */
  text: string;
}

export interface Forest {
  /** A group without a name has no heading. */
  groups: { name: string; rows: ForestRow[] }[];
  range: [number, number];
  xLabel: string;
  tick: (value: number) => string;
  level?: { x: number; label: string };
  description: string;
}

const ROW = 24;
const HEADING = 30;
const BOTTOM = 46;

export function forest(plot: Forest): HTMLElement {
  return drawnToWidth("forest", (width) => draw(plot, width));
}

function draw(plot: Forest, width: number): SVGSVGElement {
  const longest = Math.max(...plot.groups.flatMap((g) => g.rows.map((row) => row.name.length)));
  const texts = Math.max(...plot.groups.flatMap((g) => g.rows.map((row) => row.text.length)));
  const left = Math.min(14 + 7.2 * longest, width * 0.28);
  const right = width - Math.min(16 + 6.9 * texts, width * 0.4);
  const top = plot.level ? 18 : 4;
  const headings = plot.groups.filter((group) => group.name).length;
  const rows = plot.groups.reduce((sum, group) => sum + group.rows.length, 0);
  const height = top + headings * HEADING + rows * ROW + BOTTOM;
  const floor = height - BOTTOM;
  const [low, high] = plot.range;
  const x = (value: number) =>
    left + ((right - left) * (Math.min(Math.max(value, low), high) - low)) / (high - low || 1);
  const svg = s("svg", { width, height, role: "img", "aria-label": plot.description });
  for (const tick of scaleTicks(low, high, Math.max(2, Math.floor((right - left) / 70))))
    svg.append(
      s("line", {
        x1: x(tick),
        x2: x(tick),
        y1: top,
        y2: floor,
        class: tick === 0 ? "axis" : "grid",
      }),
      s("text", { x: x(tick), y: floor + 17, class: "tick middle" }, plot.tick(tick)),
    );
  if (plot.level)
    svg.append(
      s("line", { x1: x(plot.level.x), x2: x(plot.level.x), y1: top, y2: floor, class: "level" }),
      s("text", { x: x(plot.level.x), y: top - 5, class: "tick middle" }, plot.level.label),
    );
  let y = top;
  for (const group of plot.groups) {
    if (group.name) {
      svg.append(s("text", { x: 0, y: y + 20, class: "lane-name halo" }, group.name));
      y += HEADING;
    }
    for (const row of group.rows) {
      svg.append(...drawRow(row, y + ROW / 2, x, right));
      y += ROW;
    }
  }
  svg.append(
    s("text", { x: (left + right) / 2, y: height - 6, class: "label middle" }, plot.xLabel),
  );
  return svg;
}

function drawRow(
  row: ForestRow,
  y: number,
  x: (value: number) => number,
  right: number,
): SVGElement[] {
  const marker = row.ink.marker === "none" ? "circle" : row.ink.marker;
  const drawn: SVGElement[] = [s("text", { x: 8, y: y + 4, class: "tick" }, row.name)];
  if (row.low !== null && row.high !== null) {
    const [a, b] = [x(row.low), x(row.high)];
    drawn.push(
      s("path", {
        d: `M${a} ${y}H${b}M${a} ${y - 4}v8M${b} ${y - 4}v8`,
        class: `whisker stroke-${row.ink.index}`,
      }),
    );
  }
  return [
    ...drawn,
    svgMarker(marker, x(row.value), y, 5, `fill-${row.ink.index}`),
    s("text", { x: right + 10, y: y + 4, class: "value" }, row.text),
  ];
}
