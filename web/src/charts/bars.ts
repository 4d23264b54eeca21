/** Grouped bar chart in SVG, with whiskers for intervals. */

import { h, s } from "../page/dom";
import type { Ink } from "./ink";
import { scaleTicks } from "./ticks";

export interface Bar {
  ink: Ink;
  value: number | null;
  low?: number | null;
  high?: number | null;
  label: string;
}

export interface BarChart {
  groups: { name: string; bars: Bar[] }[];
  range: [number, number];
  xLabel: string;
  yLabel: string;
  yText: (value: number) => string;
  description: string;
  level?: { y: number; label: string };
  values?: boolean;
  width?: number;
}

const LEFT = 64;
const BOTTOM = 50;
const TOP = 16;
const HEIGHT = 300;

/** Bars differ by texture as well as colour, as lines differ by their dashes. */
export function drawBars(chart: BarChart): SVGSVGElement {
  const width = chart.width ?? 520;
  const right = width - (chart.level ? 66 : 8);
  const svg = s("svg", {
    viewBox: `0 0 ${width} ${HEIGHT}`,
    class: "bars",
    role: "img",
    "aria-label": chart.description,
  });
  const [low, high] = chart.range;
  const y = (value: number) =>
    TOP +
    (HEIGHT - TOP - BOTTOM) * (1 - (Math.min(Math.max(value, low), high) - low) / (high - low));
  for (const tick of scaleTicks(low, high, 5)) {
    svg.append(
      s("line", { x1: LEFT, x2: right, y1: y(tick), y2: y(tick), class: "grid" }),
      s("text", { x: LEFT - 8, y: y(tick) + 4, class: "tick end" }, chart.yText(tick)),
    );
  }
  const values: SVGElement[] = [];
  const slot = (right - LEFT) / chart.groups.length;
  for (const [g, group] of chart.groups.entries()) {
    const room = Math.min(slot * 0.78, group.bars.length * 46);
    const wide = room / group.bars.length;
    const start = LEFT + slot * (g + 0.5) - room / 2;
    for (const [i, bar] of group.bars.entries()) {
      if (bar.value === null) continue;
      const x = start + i * wide + 1;
      const top = y(bar.value);
      const base = y(Math.max(low, 0));
      const box = {
        x,
        width: Math.max(wide - 2, 1),
        y: Math.min(top, base),
        height: Math.max(Math.abs(base - top), 0.5),
      };
      svg.append(
        s("rect", { ...box, class: `bar fill-${bar.ink.index}` }, s("title", {}, bar.label)),
      );
      const fill = texture(bar.ink);
      if (fill) svg.append(s("rect", { ...box, class: "texture", fill }));
      if (bar.low != null && bar.high != null) {
        const middle = x + box.width / 2;
        const [a, b] = [y(bar.low), y(bar.high)];
        svg.append(
          s("path", {
            d: `M${middle} ${a}V${b}M${middle - 4} ${a}h8M${middle - 4} ${b}h8`,
            class: "whisker",
          }),
        );
      }
      if (chart.values)
        values.push(
          s(
            "text",
            { x: x + box.width / 2, y: Math.min(top, base) - 5, class: "tick middle halo" },
            chart.yText(bar.value),
          ),
        );
    }
    svg.append(
      s(
        "text",
        { x: LEFT + slot * (g + 0.5), y: HEIGHT - BOTTOM + 18, class: "tick middle small" },
        group.name,
      ),
    );
  }
  if (chart.level) {
    const at = y(chart.level.y);
    svg.append(
      s("line", { x1: LEFT, x2: right, y1: at, y2: at, class: "level" }),
      s("text", { x: right + 6, y: at + 4, class: "tick" }, chart.level.label),
    );
  }
  svg.append(...values);
  svg.append(
    s("line", {
      x1: LEFT,
      x2: right,
      y1: y(Math.max(low, 0)),
      y2: y(Math.max(low, 0)),
      class: "axis",
    }),
    s("text", { x: (LEFT + right) / 2, y: HEIGHT - 8, class: "label middle" }, chart.xLabel),
    s(
      "text",
      {
        transform: `translate(13 ${(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)`,
        class: "label middle",
      },
      chart.yLabel,
    ),
  );
  return svg;
}

/** SVG patterns that the bars refer to; needed once per page. */
export function textures(): SVGSVGElement {
  const svg = s("svg", { width: 0, height: 0, class: "textures", "aria-hidden": "true" });
  const pattern = (id: number, ...marks: SVGElement[]) =>
    s(
      "pattern",
      {
        id: `texture-${id}`,
        width: 6,
        height: 6,
        patternUnits: "userSpaceOnUse",
        patternTransform: id === 1 ? "rotate(45)" : null,
      },
      ...marks,
    );
  svg.append(
    s(
      "defs",
      {},
      pattern(1, s("rect", { width: 2, height: 6, class: "texture-mark" })),
      pattern(2, s("circle", { cx: 2, cy: 2, r: 1.1, class: "texture-mark" })),
      pattern(3, s("rect", { width: 6, height: 2, class: "texture-mark" })),
    ),
  );
  return svg;
}

/** Legend of a bar chart. */
export function barLegend(names: string[], ink: (name: string) => Ink): HTMLElement {
  return h(
    "div",
    { class: "legend" },
    ...names.map((name) => h("span", { class: "legend-entry" }, swatch(ink(name)), name)),
  );
}

/** Sample of a bar for the legend: colour and texture. */
function swatch(ink: Ink): SVGSVGElement {
  const box = { x: 1, y: 1, width: 12, height: 10 };
  const svg = s(
    "svg",
    { width: 14, height: 12, viewBox: "0 0 14 12", "aria-hidden": "true" },
    s("rect", { ...box, class: `bar fill-${ink.index}` }),
  );
  const fill = texture(ink);
  if (fill) svg.append(s("rect", { ...box, class: "texture", fill }));
  return svg;
}

/** URL of the pattern that is drawn over a bar; the first ranking has none. */
function texture(ink: Ink): string | null {
  return ink.index > 0 ? `url(#texture-${Math.min(ink.index, 3)})` : null;
}
