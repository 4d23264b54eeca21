/** Small plots of an estimate and its interval, for the comparisons behind the answers. */

import { s } from "../page/dom";
import { scaleTicks } from "./ticks";

export interface Interval {
  estimate: number | null;
  low: number | null;
  high: number | null;
}

export interface Scale {
  low: number;
  high: number;
  at: (value: number) => number;
}

const WIDTH = 240;
const EDGE = 16;

/** Common scale of all intervals; it always includes 0 and the other values given. */
export function commonScale(
  intervals: Interval[],
  others: number[],
  width = WIDTH,
  edge = EDGE,
): Scale {
  const values = [0, ...others];
  for (const { estimate, low, high } of intervals)
    for (const v of [estimate, low, high]) if (v !== null) values.push(v);
  const low = Math.min(...values);
  const high = Math.max(...values, low + 1e-6);
  return { low, high, at: (value) => edge + ((width - 2 * edge) * (value - low)) / (high - low) };
}

/** `name` says what the interval is of, with its numbers. */
export function drawInterval(value: Interval, scale: Scale, name: string): SVGSVGElement {
  const svg = s("svg", {
    viewBox: `0 0 ${WIDTH} 22`,
    class: "interval",
    role: "img",
    "aria-label": name,
  });
  const zero = scale.at(0);
  svg.append(s("line", { x1: zero, x2: zero, y1: 0, y2: 22, class: "axis" }));
  if (value.estimate === null) return svg;
  if (value.low !== null && value.high !== null) {
    const [a, b] = [scale.at(value.low), scale.at(value.high)];
    svg.append(s("path", { d: `M${a} 11H${b}M${a} 6v10M${b} 6v10`, class: "whisker" }));
  }
  svg.append(s("circle", { cx: scale.at(value.estimate), cy: 11, r: 4.5, class: "dot" }));
  return svg;
}

/** Axis below the plots. */
export function drawScale(scale: Scale, label: string): SVGSVGElement {
  const svg = s("svg", { viewBox: `0 0 ${WIDTH} 36`, class: "interval", "aria-hidden": "true" });
  svg.append(
    s("line", { x1: scale.at(scale.low), x2: scale.at(scale.high), y1: 1, y2: 1, class: "axis" }),
  );
  for (const tick of scaleTicks(scale.low, scale.high, 3)) {
    const x = scale.at(tick);
    svg.append(
      s("line", { x1: x, x2: x, y1: 0, y2: 5, class: "axis" }),
      s("text", { x, y: 17, class: "tick middle" }, String(tick).replace("-", "−")),
    );
  }
  svg.append(s("text", { x: WIDTH / 2, y: 32, class: "label middle" }, label));
  return svg;
}
