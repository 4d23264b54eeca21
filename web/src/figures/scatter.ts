/** Scatter plot of AUC against tiles saved: one point per audit, shaped by whether there is a better order. */

import { type Marker, svgMarker } from "../charts/ink";
import { onResize } from "../charts/resize";
import { scaleTicks } from "../charts/ticks";
import { h, s } from "../page/dom";
import { fixed, interval } from "../page/format";
import type { Point } from "./points";

const SHAPES: Record<string, Marker> = {
  headroom: "circle",
  "native suffices": "square",
  "native is better": "cross",
  mixed: "triangle",
};
const EDGE = { left: 64, right: 16, top: 14, bottom: 52 };
const HEIGHT = 330;
const LONGEST = 22;

export function drawScatter(points: Point[], yLabel: string): HTMLElement {
  const element = h("div", { class: "scatter" });
  onResize(element, () => element.replaceChildren(draw(points, yLabel, element.clientWidth)));
  return element;
}

function draw(points: Point[], yLabel: string, width: number): SVGSVGElement {
  const xs = points.map((p) => p.x);
  const ys = points.flatMap(({ y }) => [y.estimate, y.low ?? y.estimate, y.high ?? y.estimate]);
  const [xLow, xHigh] = padded(Math.min(...xs), Math.max(...xs), 0, 1);
  const [yLow, yHigh] = padded(Math.min(0, ...ys), Math.max(0, ...ys), -Infinity, 1);
  const [right, bottom] = [width - EDGE.right, HEIGHT - EDGE.bottom];
  const x = (v: number) => EDGE.left + ((right - EDGE.left) * (v - xLow)) / (xHigh - xLow);
  const y = (v: number) => EDGE.top + (bottom - EDGE.top) * (1 - (v - yLow) / (yHigh - yLow));
  const svg = s("svg", {
    width,
    height: HEIGHT,
    role: "img",
    "aria-label": `AUC against ${yLabel}, ${points.length} audits`,
  });
  for (const tick of scaleTicks(yLow, yHigh, 6))
    svg.append(
      s("line", {
        x1: EDGE.left,
        x2: right,
        y1: y(tick),
        y2: y(tick),
        class: tick === 0 ? "axis" : "grid",
      }),
      s("text", { x: EDGE.left - 8, y: y(tick) + 4, class: "tick end" }, fixed(tick, 2)),
    );
  for (const tick of scaleTicks(xLow, xHigh, Math.max(2, Math.floor(width / 110))))
    svg.append(
      s("line", { x1: x(tick), x2: x(tick), y1: EDGE.top, y2: bottom, class: "grid" }),
      s("text", { x: x(tick), y: bottom + 18, class: "tick middle" }, fixed(tick, 2)),
    );
  for (const point of points) svg.append(drawPoint(point, x, y, x(point.x) > width * 0.6));
  svg.append(
    s(
      "text",
      { x: (EDGE.left + right) / 2, y: HEIGHT - 8, class: "label middle" },
      "AUC of the classifier, all tiles",
    ),
    s(
      "text",
      {
        transform: `translate(14 ${(EDGE.top + bottom) / 2}) rotate(-90)`,
        class: "label middle",
      },
      yLabel,
    ),
  );
  return svg;
}

/** A point with its interval and the name of its model, on the side that has room. */
function drawPoint(
  { x: auc, y: saved, audit }: Point,
  x: (v: number) => number,
  y: (v: number) => number,
  toLeft: boolean,
): SVGGElement {
  const [px, py] = [x(auc), y(saved.estimate)];
  const short = audit.name.length > LONGEST ? `${audit.name.slice(0, LONGEST - 1)}…` : audit.name;
  const group = s(
    "g",
    {},
    s("title", {}, `${audit.name}: AUC ${fixed(auc)}, SHI ${interval(saved, 2)}`),
  );
  if (saved.low !== null && saved.high !== null) {
    const [a, b] = [y(saved.low), y(saved.high)];
    group.append(
      s("path", { d: `M${px} ${a}V${b}M${px - 4} ${a}h8M${px - 4} ${b}h8`, class: "whisker" }),
    );
  }
  group.append(
    svgMarker(shapeOf(audit.order), px, py, 6, "point"),
    s(
      "text",
      { x: px + (toLeft ? -11 : 11), y: py + 4, class: toLeft ? "halo end" : "halo" },
      short,
    ),
  );
  return group;
}

const shapeOf = (order: string | null): Marker => SHAPES[order ?? ""] ?? "diamond";

/** Legend of the shapes that occur. */
export function shapeLegend(points: Point[]): HTMLElement {
  const names = [...new Set(points.map((p) => p.audit.order ?? "no answer"))];
  const entry = (name: string) => {
    const icon = s(
      "svg",
      { width: 16, height: 14, viewBox: "0 0 16 14", "aria-hidden": "true" },
      svgMarker(shapeOf(name), 8, 7, 5, "point"),
    );
    return h("span", { class: "legend-entry" }, icon, name);
  };
  return h("div", { class: "legend" }, "Better order?", ...names.map(entry));
}

function padded(low: number, high: number, least: number, most: number): [number, number] {
  const room = Math.max((high - low) * 0.12, 0.02);
  return [Math.max(low - room, least), Math.min(high + room, most === 1 ? 1.02 : most)];
}
