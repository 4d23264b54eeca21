/** Line style of each ranking: colour, dash and marker, so that it can be told in grey. */

import { s } from "../page/dom";
import { colour } from "../page/theme";

export type Marker = "circle" | "square" | "triangle" | "diamond" | "cross" | "none";

export interface Ink {
  index: number;
  dash: number[];
  marker: Marker;
  width: number;
}

const INKS: Omit<Ink, "index">[] = [
  { dash: [], marker: "circle", width: 2.5 },
  { dash: [9, 4], marker: "square", width: 2 },
  { dash: [2.5, 3], marker: "none", width: 2.25 },
  { dash: [9, 3, 2, 3], marker: "triangle", width: 1.75 },
  { dash: [5, 3], marker: "diamond", width: 1.75 },
  { dash: [12, 3, 2, 3, 2, 3], marker: "cross", width: 1.75 },
  { dash: [3, 3], marker: "triangle", width: 1.75 },
  { dash: [14, 4], marker: "diamond", width: 1.75 },
];
/** The proven optimum: a thin line in the colour of text. */
export const MINIMUM: Ink = { index: 8, dash: [], marker: "none", width: 1 };

const FIXED = ["selector", "native", "random"];

/** Style of a ranking: fixed for selector, native and random, in order of appearance for others. */
export function inkOf(ranking: string, rankings: string[]): Ink {
  const others = rankings.filter((name) => !FIXED.includes(name));
  const at = FIXED.indexOf(ranking);
  const index = at >= 0 ? at : FIXED.length + others.indexOf(ranking);
  const slot =
    index < INKS.length
      ? index
      : FIXED.length + ((index - FIXED.length) % (INKS.length - FIXED.length));
  return { index: slot, ...INKS[slot] };
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

/** A marker as an SVG element. */
export function svgMarker(
  marker: Marker,
  x: number,
  y: number,
  r: number,
  className: string,
): SVGElement {
  const corners = outline(marker, x, y, r);
  if (corners === null) return s("circle", { cx: x, cy: y, r, class: className });
  return s("polygon", { points: corners.map((c) => c.join(",")).join(" "), class: className });
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
  svg.append(
    s("line", {
      x1: 1,
      y1: 6,
      x2: 33,
      y2: 6,
      class: `stroke-${ink.index}`,
      "stroke-width": ink.width,
      "stroke-dasharray": dash,
    }),
  );
  if (ink.marker !== "none") svg.append(svgMarker(ink.marker, 17, 6, 3.5, `fill-${ink.index}`));
  return svg;
}
