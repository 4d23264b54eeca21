/** Counts of every slide under one ranking, for the dot plots. */

import type { StripLane } from "../dots/stripPlot";
import { tiles } from "../page/format";
import type { AuditPayload, CountQuartiles, SlideMeasures, View } from "../page/payload";
import type { Scene } from "./scene";

/** Tiles until the model is sure, or tiles that the decision hangs on. */
export type SlideCount = "needed" | "decisive";

/** A figure with more dots than this is a cloud that takes seconds to draw. */
const MOST_DOTS = 1500;

/** Slides that are drawn: all of them, or as many as a figure can hold, evenly chosen. */
export function drawnOf<T>(slides: T[]): T[] {
  if (slides.length <= MOST_DOTS) return slides;
  const step = slides.length / MOST_DOTS;
  return Array.from({ length: MOST_DOTS }, (_, i) => slides[Math.floor(i * step)]);
}

/** What a caption says where not every slide has its dot. */
export function drawnNote(n: number): string {
  return n > MOST_DOTS ? ` ${MOST_DOTS} of the ${n} slides are drawn, evenly chosen.` : "";
}

/** Tiles of a slide, mean over seeds; null where no seed has a count. */
export function countOf(own: SlideMeasures, index: number, which: SlideCount): number | null {
  if (which === "decisive") return own.decisive[index];
  return own.reach[index] ? own.k[index] : null;
}

/** Whether the model has decided a slide: all its tiles make it at least κ sure. */
export function isDecided({ slides, kappa }: AuditPayload, index: number): boolean {
  return slides.p[index] >= kappa;
}

/** Slides of a view on which a ranking was measured. */
export function measuredSlides(
  payload: AuditPayload,
  view: View,
  ranking: string,
  which: SlideCount,
): number[] {
  const own = payload.slides.measures[view]![ranking];
  const measured = which === "decisive" ? own.found : own.reach;
  return payload.slides.id.flatMap((_, index) => (measured[index] === null ? [] : [index]));
}

/** Share of slides with a count of at most K, for every K; a slide without one never counts. */
export function cumulative(
  counts: { count: number | null; weight: number }[],
  ks: number[],
): number[] {
  return ks.map((k) => {
    const within = counts.filter(({ count }) => count !== null && count <= k);
    return within.reduce((sum, { weight }) => sum + weight, 0) / counts.length;
  });
}

/** Decided slides of two tiles or more on which all the rankings were deleted. */
export function carriedSlides(payload: AuditPayload, rankings: string[]): number[] {
  const measured = rankings.map(
    (name) => new Set(measuredSlides(payload, "prediction", name, "decisive")),
  );
  return payload.slides.id.flatMap((_, index) => {
    const long = payload.slides.n[index] > 1 && isDecided(payload, index);
    return long && measured.every((own) => own.has(index)) ? [index] : [];
  });
}

export function laneOf(
  scene: Scene,
  ranking: string,
  which: SlideCount,
  chosen: (index: number) => boolean = () => true,
): StripLane | null {
  const { payload, view } = scene;
  const slides = measuredSlides(payload, view, ranking, which).filter(chosen);
  if (!slides.length) return null;
  const own = payload.slides.measures[view]![ranking];
  const decided = scene.numbers(ranking).decided;
  const stored = which === "decisive" ? decided?.decisive : decided?.msk;
  return {
    name: ranking,
    note: `${slides.length} slides`,
    className: `fill-${scene.ink(ranking).index}`,
    quartiles: view === "prediction" && stored ? ends(stored) : null,
    dots: drawnOf(slides).map((id) => {
      const count = countOf(own, id, which);
      const said = count === null ? (which === "decisive" ? "none" : "never") : tiles(count);
      const hollow = !isDecided(payload, id);
      const label = `${payload.slides.id[id]}, ${ranking}: ${said}${hollow ? ", undecided" : ""}`;
      return { id, count, hollow, label };
    }),
  };
}

function ends({ low, median, high }: CountQuartiles): StripLane["quartiles"] {
  return { low: low.value, median: median.value, high: high.value };
}
