/** Dot plot of slides on two log axes: one order against another, a dot per slide. */

import { s } from "../page/dom";
import { type Dot, dotGroup } from "./dotGroup";
import { logAxis } from "./logAxis";
import { spread } from "./places";
import { drawnToWidth } from "../charts/resize";

export interface SlidePoint {
  id: number;
  /** Tiles under either order; null where the slide has no count. */
  x: number | null;
  y: number | null;
  hollow: boolean;
  label: string;
}

export interface DotPlot {
  points: SlidePoint[];
  kMax: number;
  xLabel: string;
  yLabel: string;
  /** Name of the lane for slides without a count. */
  lane: string;
  /** Notes in the two halves: fewer tiles under y, fewer under x. */
  below: string;
  above: string;
  description: string;
  open?: (id: number) => void;
}

const EDGE = { left: 66, right: 26, top: 16, bottom: 52 };
const RADIUS = 4.5;
/** Room for a note below the lowest dots and above the highest. */
const NOTE = 28;

export function dotPlot(plot: DotPlot): HTMLElement {
  return drawnToWidth("dot-plot", (width) => draw(plot, width));
}

function draw(plot: DotPlot, width: number): SVGSVGElement {
  const height = Math.min(440, Math.max(300, width * 0.8));
  const [right, bottom] = [width - EDGE.right, height - EDGE.bottom];
  const x = logAxis(plot.kMax, EDGE.left + 14, right - 10, plot.lane);
  const y = logAxis(plot.kMax, bottom - NOTE, EDGE.top + NOTE, plot.lane);
  const svg = s("svg", { width, height, role: "group", "aria-label": plot.description });
  const grid = (attributes: Record<string, number>, className = "grid") =>
    s("line", { ...attributes, class: className });
  for (const tick of x.ticks)
    svg.append(
      grid({ x1: tick.at, x2: tick.at, y1: EDGE.top, y2: bottom }),
      s("text", { x: tick.at, y: bottom + 18, class: "tick middle" }, tick.label),
    );
  for (const tick of y.ticks)
    svg.append(
      grid({ x1: EDGE.left, x2: right, y1: tick.at, y2: tick.at }),
      s("text", { x: EDGE.left - 8, y: tick.at + 4, class: "tick end" }, tick.label),
    );
  const ends = [1, plot.kMax] as const;
  svg.append(
    grid({ x1: x.at(ends[0]), y1: y.at(ends[0]), x2: x.at(ends[1]), y2: y.at(ends[1]) }, "level"),
    s("text", { x: right - 6, y: bottom - 7, class: "tick end halo" }, plot.below),
    s("text", { x: EDGE.left + 6, y: EDGE.top + 12, class: "tick halo" }, plot.above),
    s("text", { x: (EDGE.left + right) / 2, y: height - 10, class: "label middle" }, plot.xLabel),
    s(
      "text",
      {
        transform: `translate(15 ${(EDGE.top + bottom) / 2}) rotate(-90)`,
        class: "label middle",
      },
      plot.yLabel,
    ),
  );
  const dots = plot.points.map((point): Dot => ({
    id: point.id,
    x: x.at(point.x),
    y: y.at(point.y),
    label: point.label,
    hollow: point.hollow,
    className: "plain",
  }));
  svg.append(dotGroup(spread(dots, RADIUS), RADIUS, plot.description, plot.open));
  return svg;
}
