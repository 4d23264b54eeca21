/** Figure: every slide under two orders, native against the one that is tried. */

import { dotPlot, type SlidePoint } from "../dots/dotPlot";
import { table } from "../page/dom";
import { tiles } from "../page/format";
import type { AuditPayload, View } from "../page/payload";
import { figure } from "./figure";
import type { Scene } from "./scene";
import {
  countOf,
  drawnNote,
  drawnOf,
  isDecided,
  measuredSlides,
  type SlideCount,
} from "./slideCounts";

/** The two orders to compare: the map and the candidate of the answers, else random orders. */
export function comparedOrders(payload: AuditPayload): [string, string] | null {
  const names = payload.rankings.map((r) => r.name);
  const map = payload.answers?.map ?? "native";
  const other = payload.answers?.candidate ?? names.find((n) => n !== map && n !== "random");
  const second = other ?? names.find((name) => name === "random");
  return names.includes(map) && second !== undefined ? [map, second] : null;
}

/** Decisive K where both orders have it on some slide, else the tiles needed. */
export function countToCompare(payload: AuditPayload, view: View, orders: string[]): SlideCount {
  const measures = payload.slides.measures[view]!;
  const found = orders.every((name) => measures[name].found.some((share) => (share ?? 0) > 0));
  return found && view === "prediction" ? "decisive" : "needed";
}

export function pointsOfSlides(
  payload: AuditPayload,
  view: View,
  [first, second]: [string, string],
  which: SlideCount,
): SlidePoint[] {
  const measures = payload.slides.measures[view]!;
  const measured = new Set(measuredSlides(payload, view, second, which));
  const both = measuredSlides(payload, view, first, which).filter((index) => measured.has(index));
  const said = (count: number | null) => (count === null ? "none" : tiles(count));
  return both.map((id) => {
    const [x, y] = [first, second].map((name) => countOf(measures[name], id, which));
    const hollow = !isDecided(payload, id);
    const label = `${payload.slides.id[id]}: ${first} ${said(x)}, ${second} ${said(y)}${hollow ? ", undecided" : ""}`;
    return { id, x, y, hollow, label };
  });
}

export function slideBySlideFigure(
  scene: Scene,
  open: (index: number) => void,
): HTMLElement | null {
  const { payload, view } = scene;
  const orders = comparedOrders(payload);
  if (orders === null) return null;
  const which = countToCompare(payload, view, orders);
  const points = pointsOfSlides(payload, view, orders, which);
  if (!points.length) return null;
  const [first, second] = orders;
  const what = which === "decisive" ? "decisive K" : "tiles needed";
  const decided = points.filter((point) => !point.hollow);
  const rows = [decided, points.filter((point) => point.hollow)].map((group) => {
    const sizes = group.map(({ x, y }) => (x ?? Infinity) - (y ?? Infinity) || 0);
    const count = (sign: number) => sizes.filter((size) => Math.sign(size) === sign).length;
    return [count(1), count(-1), count(0), group.length];
  });
  return figure({
    title: `Slide by slide: ${first} against ${second}`,
    caption:
      `${which === "decisive" ? "Tiles the decision hangs on (decisive K)" : "Tiles needed"} under either order, a dot per slide (mean over seeds): n = ${points.length}, ` +
      `${decided.length} decided; hollow: undecided. Below the line ${second} needs fewer.${drawnNote(points.length)} Pick a dot to open its slide.`,
    body: [
      dotPlot({
        points: drawnOf(points),
        kMax: payload.k_max,
        xLabel: `${what} under ${first}`,
        yLabel: `${what} under ${second}`,
        lane: which === "decisive" ? "none" : "never",
        below: `fewer under ${second}`,
        above: `fewer under ${first}`,
        description: `${what} of every slide under ${first} and under ${second}`,
        open,
      }),
    ],
    numbers: table(
      ["slides", `fewer under ${second}`, `fewer under ${first}`, "the same", "n"],
      [
        ["decided", ...rows[0]],
        ["undecided", ...rows[1]],
      ],
    ),
  });
}
