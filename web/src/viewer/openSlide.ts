/** One slide as the screens use it: curves, orders and tiles, unpacked once. */

import type { AuditPayload } from "../page/payload";
import { type SlideData, slideData } from "../slides/data";
import type { DecisionCurve, SlidePyramid, ViewerCohort, ViewerSlide } from "./types.generated";

const VIEW = "prediction";

export interface OpenSlide {
  number: number;
  id: string;
  data: SlideData;
  /** What a column is called: its ranking in plain words, and its seed. */
  names: Record<string, string>;
  /** Rank by tile (1 is first), by column. */
  ranks: Record<string, Uint32Array>;
  /** What the model says of the first K tiles alone, and without them, by column. */
  keeps: Record<string, DecisionCurve>;
  deletions: Record<string, DecisionCurve>;
  predicted: string;
  /** Its number. */
  target: number;
  pyramid: SlidePyramid | null;
  message: string | null;
  /** Tiles in widths of the slide: left and top of each, and the side of all. */
  left: Float64Array;
  top: Float64Array;
  side: number;
  /** Height of the slide in its widths, and its width in level-0 pixels (null: no such unit). */
  height: number;
  pixels: number | null;
}

export function openSlide(cohort: ViewerCohort, slide: ViewerSlide): OpenSlide {
  const { number } = slide;
  const audit: AuditPayload = { ...cohort.audit, details: { [number]: slide.detail } };
  const data = slideData(audit, number, VIEW);
  return {
    number,
    id: audit.slides.id[number],
    data,
    names: Object.fromEntries(
      audit.rankings.flatMap(({ name, columns }) =>
        columns.map((one) => [
          one,
          cohort.names[name] + one.slice(name.length).replace("-", ", seed "),
        ]),
      ),
    ),
    ranks: Object.fromEntries(data.columns.map((name) => [name, ranksOf(data.order[name])])),
    keeps: slide.keeps[VIEW] ?? {},
    deletions: slide.deletions[VIEW] ?? {},
    predicted: audit.classes[audit.slides.predicted[number]],
    target: audit.slides.predicted[number],
    pyramid: slide.pyramid,
    message: slide.message,
    ...placed(data, slide.pyramid),
  };
}

/** Rank (1 is first) of every tile in an order. */
export function ranksOf(order: ArrayLike<number>): Uint32Array {
  const ranks = new Uint32Array(order.length);
  for (let i = 0; i < order.length; i++) ranks[order[i]] = i + 1;
  return ranks;
}

/** The count at which the decision first flips when the first tiles are removed; null: never. */
export function flipAt({ deletions, target }: OpenSlide, column: string): number | null {
  const found = deletions[column];
  const at = found ? found.says.findIndex((says) => says !== target) : -1;
  return at < 0 ? null : found.ks[at];
}

type Placed = Pick<OpenSlide, "left" | "top" | "side" | "height" | "pixels">;
const MARGIN = 0.04;

/** Tiles on the image, or on a lattice with a margin around them. */
export function placed({ corners, detail }: SlideData, pyramid: SlidePyramid | null): Placed {
  const { placement } = detail;
  const { x, y, side } = corners;
  const count = x.length;
  let box = { x: 0, y: 0, width: 1, height: 1 };
  if (pyramid && placement) {
    const { step, origin } = placement;
    box = {
      x: (pyramid.origin[0] - origin[0]) / step,
      y: (pyramid.origin[1] - origin[1]) / step,
      width: pyramid.width / step,
      height: pyramid.height / step,
    };
  } else {
    let right = side;
    let bottom = side;
    for (let i = 0; i < count; i++) {
      right = Math.max(right, x[i] + side);
      bottom = Math.max(bottom, y[i] + side);
    }
    const margin = MARGIN * Math.max(right, bottom);
    box = { x: -margin, y: -margin, width: right + 2 * margin, height: bottom + 2 * margin };
  }
  const left = new Float64Array(count);
  const top = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    left[i] = (x[i] - box.x) / box.width;
    top[i] = (y[i] - box.y) / box.width;
  }
  const inPixels = placement !== null && detail.unit === "px";
  return {
    left,
    top,
    side: side / box.width,
    height: box.height / box.width,
    pixels: inPixels ? box.width * placement!.step : null,
  };
}
