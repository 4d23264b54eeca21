/** Scatter plot of AUC against headroom: one point per audit, shaped by whether there is a better order. */

import { type Marker, svgMarker } from "../charts/ink";
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
const BOX = { left: 64, right: 16, top: 14, bottom: 52, width: 520, height: 330 };

export function drawScatter(points: Point[], yLabel: string): SVGSVGElement {
  const xs = points.map((p) => p.x);
  const ys = points.flatMap((p) => [
    p.y.estimate,
    p.y.low ?? p.y.estimate,
    p.y.high ?? p.y.estimate,
  ]);
  const [xLow, xHigh] = padded(Math.min(...xs), Math.max(...xs), 0, 1);
  const [yLow, yHigh] = padded(Math.min(0, ...ys), Math.max(0, ...ys), -Infinity, 1);
  const x = (v: number) =>
    BOX.left + ((BOX.width - BOX.left - BOX.right) * (v - xLow)) / (xHigh - xLow);
  const y = (v: number) =>
    BOX.top + (BOX.height - BOX.top - BOX.bottom) * (1 - (v - yLow) / (yHigh - yLow));
  const svg = s("svg", {
    viewBox: `0 0 ${BOX.width} ${BOX.height}`,
    class: "bars",
    role: "img",
    "aria-label": `AUC against ${yLabel}, ${points.length} audits`,
  });
  for (const tick of scaleTicks(yLow, yHigh, 6)) {
    svg.append(
      s("line", {
        x1: BOX.left,
        x2: BOX.width - BOX.right,
        y1: y(tick),
        y2: y(tick),
        class: tick === 0 ? "axis" : "grid",
      }),
      s("text", { x: BOX.left - 8, y: y(tick) + 4, class: "tick end" }, fixed(tick, 2)),
    );
  }
  for (const tick of scaleTicks(xLow, xHigh, 6)) {
    svg.append(
      s("line", {
        x1: x(tick),
        x2: x(tick),
        y1: BOX.top,
        y2: BOX.height - BOX.bottom,
        class: "grid",
      }),
      s(
        "text",
        { x: x(tick), y: BOX.height - BOX.bottom + 18, class: "tick middle" },
        fixed(tick, 2),
      ),
    );
  }
  // The number goes to the left of its point if another point is close on the right.
  const crowded = (point: Point) =>
    points.some((other) => {
      const gap = x(other.x) - x(point.x);
      return (
        other !== point &&
        gap >= 0 &&
        gap < 26 &&
        Math.abs(y(other.y.estimate) - y(point.y.estimate)) < 14
      );
    });
  for (const point of points) {
    const group = s(
      "g",
      {},
      s(
        "title",
        {},
        `${point.number} ${point.audit.name}: AUC ${fixed(point.x)}, SHI ${interval(point.y, 2)}`,
      ),
    );
    if (point.y.low !== null && point.y.high !== null) {
      const [a, b] = [y(point.y.low), y(point.y.high)];
      group.append(
        s("path", {
          d: `M${x(point.x)} ${a}V${b}M${x(point.x) - 4} ${a}h8M${x(point.x) - 4} ${b}h8`,
          class: "whisker",
        }),
      );
    }
    group.append(
      svgMarker(shapeOf(point.audit.order), x(point.x), y(point.y.estimate), 6, "point"),
      s(
        "text",
        {
          x: x(point.x) + (crowded(point) ? -11 : 11),
          y: y(point.y.estimate) + 4,
          class: crowded(point) ? "tick end halo" : "tick halo",
        },
        point.number,
      ),
    );
    svg.append(group);
  }
  svg.append(
    s(
      "text",
      { x: (BOX.left + BOX.width) / 2, y: BOX.height - 8, class: "label middle" },
      "AUC of the classifier, all tiles",
    ),
    s(
      "text",
      {
        transform: `translate(14 ${(BOX.top + BOX.height - BOX.bottom) / 2}) rotate(-90)`,
        class: "label middle",
      },
      yLabel,
    ),
  );
  return svg;
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
  return h("div", { class: "legend" }, ...names.map(entry));
}

function padded(low: number, high: number, least: number, most: number): [number, number] {
  const room = Math.max((high - low) * 0.12, 0.02);
  return [Math.max(low - room, least), Math.min(high + room, most === 1 ? 1.02 : most)];
}
