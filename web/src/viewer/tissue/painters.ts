/** Painters of tiles on a slide: the first K by rank, or some tiles without their rank. */

import { colour, theme } from "../../page/theme";
import { rankChannels } from "../../tiles/rankColours";
import type { OpenSlide } from "../openSlide";
import { channels, pixel, Raster } from "./raster";
import type { Painter, Place } from "./stage";

const DARK = pixel([16, 19, 26]);
const LIGHT = pixel([255, 255, 255]);
const YELLOW = pixel([255, 214, 10]);
/** Tiles that are smaller, in pixels of the page, have no frame. */
const FRAMED = 7;
const VEIL = 0.38;

/** The first K tiles of a ranking, coloured by rank; the newest one has a ring. */
export function revealPainter(column: string, k: number, kMax: number): Painter {
  return (context, at, slide) => {
    const onTissue = slide.pyramid !== null;
    const dark = !onTissue && theme() === "dark";
    const order = slide.data.order[column];
    const end = Math.min(k, order.length);
    const raster = new Raster(context, at, slide);
    if (!onTissue) lattice(raster, slide);
    // Late tiles first, so that early ones lie on top where tiles overlap.
    const { full, veiled } = shadesOf(kMax, dark);
    for (let rank = end; rank >= 1; rank--)
      square(raster, order[rank - 1], full[rank], veiled[rank], onTissue);
    raster.put();
    if (end >= 1) ringNewest(context, at, slide, order[end - 1]);
  };
}

interface Shades {
  full: Uint32Array;
  veiled: Uint32Array;
}
const known = new Map<string, Shades>();

/** Pixels of every rank, opaque and as a veil, computed once. */
function shadesOf(kMax: number, dark: boolean): Shades {
  const key = `${kMax} ${dark}`;
  const found = known.get(key);
  if (found) return found;
  const made = { full: new Uint32Array(kMax + 1), veiled: new Uint32Array(kMax + 1) };
  for (let rank = 1; rank <= kMax; rank++) {
    const shade = rankChannels(rank, kMax, dark);
    made.full[rank] = pixel(shade);
    made.veiled[rank] = pixel(shade, VEIL);
  }
  known.set(key, made);
  return made;
}

/** Tiles framed alike, for readers that must not know their rank. */
export function blindPainter(tiles: number[]): Painter {
  return (context, at, slide) => {
    const raster = new Raster(context, at, slide);
    if (slide.pyramid === null) lattice(raster, slide);
    for (const tile of tiles) {
      square(raster, tile, YELLOW, 0, true);
    }
    raster.put();
  };
}

/** A tile; on tissue with a frame that keeps its contrast: a dark line, a light one, its colour. */
function square(
  raster: Raster,
  tile: number,
  full: number,
  veiled: number,
  onTissue: boolean,
): void {
  if (raster.side < FRAMED) return raster.fill(tile, 0, full);
  if (!onTissue) return raster.fill(tile, 1, full);
  raster.fill(tile, 0, DARK);
  raster.fill(tile, 1, LIGHT);
  raster.fill(tile, 2, full);
  if (raster.side > 10) raster.fill(tile, 4, veiled);
}

/** Every tile as an empty square, for slides without an image. */
export function lattice(raster: Raster, slide: OpenSlide): void {
  const outlined = raster.side > 5;
  const line = pixel(channels(colour(outlined ? "--outline" : "--grid")));
  for (let tile = 0; tile < slide.left.length; tile++) {
    raster.fill(tile, 0, line);
    if (outlined) raster.fill(tile, 1, 0);
  }
}

function ringNewest(
  context: CanvasRenderingContext2D,
  at: Place,
  slide: OpenSlide,
  tile: number,
): void {
  const side = slide.side * at.scale;
  const left = at.x + slide.left[tile] * at.scale - 1.5;
  const top = at.y + slide.top[tile] * at.scale - 1.5;
  for (const [width, shade] of [
    [5, "#fff"],
    [2.5, "#b3245b"],
  ] as const) {
    context.lineWidth = width;
    context.strokeStyle = shade;
    context.strokeRect(left, top, side + 3, side + 3);
  }
}

/** Whether a tile lies in the part that is on the screen. */
export function inView(at: Place, { left, top, side }: OpenSlide): (tile: number) => boolean {
  const [low, high] = [-at.x / at.scale - side, (at.width - at.x) / at.scale];
  const [upper, lower] = [-at.y / at.scale - side, (at.height - at.y) / at.scale];
  return (tile) => left[tile] > low && left[tile] < high && top[tile] > upper && top[tile] < lower;
}
