/** Painters of tiles on a slide: the first K outlined, the map as heat, what the model sees. */

import { colour } from "../../page/theme";
import { rankChannels } from "../../tiles/rankColours";
import type { OpenSlide } from "../openSlide";
import { channels, pixel, Raster } from "./raster";
import type { Painter, Place } from "./stage";

const LIGHT = pixel([255, 255, 255]);
/** Tiles that are smaller, in pixels of the page, have no frame. */
const FRAMED = 7;

/** How the tiles of a ranking are drawn. */
export interface Look {
  /** Nothing at all, the first K outlined, or the map over every tile with the first K outlined. */
  tiles: "hidden" | "outlines" | "heat";
  /** Of the heat map, 0 to 1. */
  opacity: number;
  /** Which tiles the model sees: all, only the first K, or all but these. */
  seen: "all" | "only" | "without";
  /** Colour of the ranking on a light ground, as #rrggbb. */
  colour: string;
}

const COVER = pixel([228, 228, 231], 0.92);

/** The first K tiles of a ranking on the slide; the newest one has a ring. */
export function revealPainter(column: string, k: number, look: Look): Painter {
  return (context, at, slide) => {
    const onTissue = slide.pyramid !== null;
    const order = slide.data.order[column];
    const end = Math.min(k, order.length);
    const raster = new Raster(context, at, slide);
    if (!onTissue) lattice(raster, slide);
    if (look.tiles === "heat") heat(raster, order, end, look.opacity);
    const hidden = look.tiles === "hidden";
    if (look.seen === "only" && !hidden)
      for (let i = end; i < order.length; i++) raster.fill(order[i], 0, COVER);
    const line = pixel(channels(look.colour));
    const inside = look.seen === "without" ? COVER : null;
    // Late tiles first, so that early ones lie on top where tiles overlap.
    for (let rank = end; rank >= 1 && !hidden; rank--)
      outline(raster, order[rank - 1], line, inside ?? under(look, rank, order.length, slide));
    raster.put();
    if (end >= 1 && !hidden) ringNewest(context, at, slide, order[end - 1]);
  };
}

/** Every tile after the first ones by its rank, first tiles strongest; outlines hold the others. */
function heat(raster: Raster, order: ArrayLike<number>, first: number, opacity: number): void {
  const shades = shadesOf(order.length, opacity);
  for (let i = order.length - 1; i >= first; i--) raster.fill(order[i], 0, shades[i + 1]);
}

/** What lies within an outline: the map where it is shown, else the tissue itself. */
function under(look: Look, rank: number, n: number, slide: OpenSlide): number {
  if (look.tiles === "heat") return shadesOf(n, look.opacity)[rank];
  return slide.pyramid === null ? pixel(channels(look.colour), 0.35) : 0;
}

let known: { key: string; shades: Uint32Array } = { key: "", shades: new Uint32Array() };

/** Pixels of every rank, computed once. */
function shadesOf(n: number, opacity: number): Uint32Array {
  const key = `${n} ${opacity}`;
  if (known.key === key) return known.shades;
  const shades = new Uint32Array(n + 1);
  for (let rank = 1; rank <= n; rank++) shades[rank] = pixel(rankChannels(rank, n, false), opacity);
  known = { key, shades };
  return shades;
}

/** A tile as a frame: a light line, then the ranking's colour, then what it holds. */
function outline(raster: Raster, tile: number, line: number, inside: number): void {
  if (raster.side < FRAMED) return raster.fill(tile, 0, line);
  raster.fill(tile, 0, LIGHT);
  raster.fill(tile, 1, line);
  raster.fill(tile, 3, inside);
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
