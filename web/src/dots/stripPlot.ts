/** Strip plot of slides: a lane per ranking, a dot per slide on a log axis, median and quartiles. */

import { s } from "../page/dom";
import { type Dot, dotGroup } from "./dotGroup";
import { type LogAxis, logAxis } from "./logAxis";
import { pile } from "./places";
import { drawnToWidth } from "../charts/resize";

export interface StripDot {
  id: number;
  /** Null where the slide has no count. */
  count: number | null;
  hollow: boolean;
  label: string;
}

export interface StripLane {
  name: string;
  /** Small print below the name, the number of slides for instance. */
  note: string;
  className: string;
  dots: StripDot[];
  /** Null where a quartile falls on slides without a count. */
  quartiles: { low: number | null; median: number | null; high: number | null } | null;
}

export interface StripPlot {
  lanes: StripLane[];
  kMax: number;
  xLabel: string;
  /** Name of the place for slides without a count. */
  lane: string;
  description: string;
  laneHeight?: number;
  /** Without names of lanes and with few ticks, for a card. */
  small?: boolean;
  open?: (id: number) => void;
}

const RADIUS = 3.4;

export function stripPlot(plot: StripPlot): HTMLElement {
  return drawnToWidth("strip-plot", (width) => draw(plot, width));
}

function draw(plot: StripPlot, width: number): SVGSVGElement {
  const tall = plot.laneHeight ?? 72;
  const left = plot.small ? 16 : width < 480 ? 84 : 132;
  const bottom = plot.small ? 36 : 44;
  const height = plot.lanes.length * tall + bottom;
  const floor = height - bottom;
  const axis = logAxis(plot.kMax, left + 10, width - 24, plot.lane);
  const svg = s("svg", { width, height, role: "group", "aria-label": plot.description });
  for (const tick of axis.ticks)
    svg.append(
      s("line", { x1: tick.at, x2: tick.at, y1: 4, y2: floor, class: "grid" }),
      s("text", { x: tick.at, y: floor + 16, class: "tick middle" }, tick.label),
    );
  for (const [i, lane] of plot.lanes.entries()) {
    const middle = i * tall + tall / 2;
    if (!plot.small)
      svg.append(
        s("text", { x: 0, y: middle, class: "lane-name" }, lane.name),
        s("text", { x: 0, y: middle + 15, class: "tick small" }, lane.note),
      );
    if (i > 0)
      svg.append(s("line", { x1: 0, x2: width, y1: i * tall, y2: i * tall, class: "grid" }));
    const dots = pile(lane.dots, axis, middle, tall - 18, RADIUS).map((dot): Dot => ({
      ...dot,
      className: lane.className,
    }));
    svg.append(
      dotGroup(dots, RADIUS, `${lane.name}, ${lane.note}`, plot.open),
      ...summary(lane, axis, middle, tall),
    );
  }
  svg.append(
    s("text", { x: (left + width) / 2, y: height - 4, class: "label middle" }, plot.xLabel),
  );
  return svg;
}

/** The median as a tall line, the quartiles as a bracket below the dots. */
function summary(lane: StripLane, axis: LogAxis, middle: number, tall: number): SVGElement[] {
  if (!lane.quartiles) return [];
  const { low, median, high } = lane.quartiles;
  const y = middle + tall / 2 - 6;
  const [a, m, b] = [axis.at(low), axis.at(median), axis.at(high)];
  return [
    s("path", { d: `M${a} ${y - 4}v8M${a} ${y}H${b}M${b} ${y - 4}v8`, class: "whisker" }),
    s("path", { d: `M${m} ${middle - tall / 2 + 4}V${y + 4}`, class: "median" }),
  ];
}
