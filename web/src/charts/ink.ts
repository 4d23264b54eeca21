/** Line style of each ranking: colour, dash and marker, so that it can be told in grey. */

import { s } from "../page/dom";
import { colour, theme } from "../page/theme";

export type Marker = "circle" | "square" | "triangle" | "diamond" | "cross" | "none";

export interface Ink {
  index: number;
  dash: number[];
  marker: Marker;
  width: number;
}

/** Name, dashes, marker and width of each ranking; its colour is --ink-N of the style sheet. */
const INKS: [string, number[], Marker, number][] = [
  ["native", [], "circle", 2.5],
  ["evidence", [9, 4], "square", 2.25],
  ["selector", [9, 3, 2, 3], "triangle", 2],
  ["minimal", [], "none", 1],
  ["random", [2.5, 3], "none", 2.25],
  ["from-file", [5, 3], "diamond", 1.75],
  ["greedy-insertion", [12, 3, 2, 3, 2, 3], "cross", 1.75],
  ["greedy-deletion", [3, 3], "triangle", 1.75],
  ["single-tile", [14, 4], "diamond", 1.75],
  ["leave-one-out", [7, 3], "square", 1.75],
  ["gradient-x-input", [4, 2], "circle", 1.75],
  ["integrated-gradients", [10, 2, 2, 2], "cross", 1.75],
  ["feature-norm", [6, 2], "triangle", 1.75],
];
const NAMED = 5;

/** Style of a ranking, the same on every page; a map with a name of its own gets one by its name. */
export function inkOf(ranking: string): Ink {
  const known = INKS.findIndex(([name]) => name === ranking);
  const index = known >= 0 ? known : NAMED + (crc32(ranking) % (INKS.length - NAMED));
  const [, dash, marker, width] = INKS[index];
  return { index, dash, marker, width };
}

/** CRC-32 of a text in UTF-8: Python chooses the colour of a name by the same number. */
function crc32(text: string): number {
  let rest = -1;
  for (const byte of new TextEncoder().encode(text)) {
    rest ^= byte;
    for (let bit = 0; bit < 8; bit++) rest = rest & 1 ? (rest >>> 1) ^ 0xedb88320 : rest >>> 1;
  }
  return ~rest >>> 0;
}

/** Colour of a band around a line. */
export function shade(ink: Ink): string {
  return `${stroke(ink)}${theme() === "dark" ? "26" : "18"}`;
}

export function stroke(ink: Ink): string {
  return colour(`--ink-${ink.index}`);
}

/** Corners of a marker around a point, as a closed path; null for a circle. */
export function outline(
  marker: Marker,
  x: number,
  y: number,
  r: number,
): [number, number][] | null {
  switch (marker) {
    case "square":
      return [
        [x - r, y - r],
        [x + r, y - r],
        [x + r, y + r],
        [x - r, y + r],
      ];
    case "triangle":
      return [
        [x, y - 1.2 * r],
        [x + 1.15 * r, y + 0.9 * r],
        [x - 1.15 * r, y + 0.9 * r],
      ];
    case "diamond":
      return [
        [x, y - 1.35 * r],
        [x + 1.35 * r, y],
        [x, y + 1.35 * r],
        [x - 1.35 * r, y],
      ];
    case "cross": {
      const a = 0.45 * r;
      const b = 1.25 * r;
      return [
        [x - a, y - b],
        [x + a, y - b],
        [x + a, y - a],
        [x + b, y - a],
        [x + b, y + a],
        [x + a, y + a],
        [x + a, y + b],
        [x - a, y + b],
        [x - a, y + a],
        [x - b, y + a],
        [x - b, y - a],
        [x - a, y - a],
      ];
    }
    default:
      return null;
  }
}

export function drawMarker(
  context: CanvasRenderingContext2D,
  marker: Marker,
  x: number,
  y: number,
  r: number,
): void {
  context.beginPath();
  const corners = outline(marker, x, y, r);
  if (corners === null) context.arc(x, y, r, 0, 2 * Math.PI);
  else
    for (const [i, [cx, cy]] of corners.entries())
      i ? context.lineTo(cx, cy) : context.moveTo(cx, cy);
  context.closePath();
  context.fill();
}

/** Sample of a line for the legend. */
export function sample(ink: Ink): SVGSVGElement {
  const svg = s("svg", {
    width: 34,
    height: 12,
    viewBox: "0 0 34 12",
    class: "sample",
    "aria-hidden": "true",
  });
  const dash = ink.dash.join(" ") || null;
  const colour = `var(--ink-${ink.index})`;
  svg.append(
    s("line", {
      x1: 1,
      y1: 6,
      x2: 33,
      y2: 6,
      stroke: colour,
      "stroke-width": ink.width,
      "stroke-dasharray": dash,
    }),
  );
  if (ink.marker === "none") return svg;
  const points = outline(ink.marker, 17, 6, 3.5)?.join(" ");
  svg.append(
    points
      ? s("polygon", { points, fill: colour })
      : s("circle", { cx: 17, cy: 6, r: 3.5, fill: colour }),
  );
  return svg;
}
