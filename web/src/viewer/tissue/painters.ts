/** Painters of tiles on a slide: the first K by rank, two sets, and differences of rank. */

import { rankColour } from "../../tiles/rankColours";
import { colour, theme } from "../../page/theme";
import type { OpenSlide } from "../openSlide";
import type { Painter, Place } from "./stage";

const SHADES = 48;

/** The first K tiles of a ranking, coloured by rank; the newest one has a double outline. */
export function revealPainter(column: string, k: number, kMax: number): Painter {
  return (context, at, slide) => {
    const onTissue = slide.pyramid !== null;
    const dark = !onTissue && theme() === "dark";
    if (!onTissue) paintLattice(context, at, slide);
    const order = slide.data.order[column];
    const end = Math.min(k, order.length);
    const side = slide.side * at.scale;
    const shown = inView(at, slide);
    // One path per shade, late tiles first, so that early ones lie on top where tiles overlap.
    const shades = new Map<number, number[]>();
    for (let rank = end; rank >= 1; rank--) {
      const tile = order[rank - 1];
      if (!shown(tile)) continue;
      const shade = Math.round((SHADES * Math.log(rank)) / Math.log(Math.max(kMax, 2)));
      const list = shades.get(shade);
      if (list) list.push(tile);
      else shades.set(shade, [tile]);
    }
    if (onTissue && side >= 7) frame(context, at, slide, [...shades.values()].flat());
    for (const [shade, tiles] of shades) {
      context.fillStyle = rankColour(kMax ** (shade / SHADES), kMax, dark);
      if (!onTissue || side < 7) fill(context, at, slide, tiles, side >= 7 ? 0.5 : 0);
      else {
        fill(context, at, slide, tiles, 3);
        for (const tile of tiles) context.clearRect(...square(at, slide, tile, 4.5));
        context.globalAlpha = 0.38;
        fill(context, at, slide, tiles, 4.5);
        context.globalAlpha = 1;
      }
    }
    if (end >= 1) paintNewest(context, at, slide, order[end - 1]);
  };
}

/** Frames that keep a contrast on any tissue: a dark line outside, a light one inside. */
function frame(
  context: CanvasRenderingContext2D,
  at: Place,
  slide: OpenSlide,
  tiles: number[],
): void {
  context.fillStyle = "#10131a";
  fill(context, at, slide, tiles, 0);
  context.fillStyle = "#fff";
  fill(context, at, slide, tiles, 1.5);
}

/** Filled squares are painted one by one: many times faster than one path of all. */
function fill(
  context: CanvasRenderingContext2D,
  at: Place,
  slide: OpenSlide,
  tiles: number[],
  inset: number,
): void {
  for (const tile of tiles) context.fillRect(...square(at, slide, tile, inset));
}

function paintNewest(
  context: CanvasRenderingContext2D,
  at: Place,
  slide: OpenSlide,
  tile: number,
): void {
  for (const [width, shade] of [
    [5, "#fff"],
    [2.5, "#b3245b"],
  ] as const) {
    context.lineWidth = width;
    context.strokeStyle = shade;
    context.strokeRect(...square(at, slide, tile, -1.5));
  }
}

/** Every tile as an empty square, for slides without an image. */
export function paintLattice(context: CanvasRenderingContext2D, at: Place, slide: OpenSlide): void {
  const side = slide.side * at.scale;
  const shown = inView(at, slide);
  const outlined = side > 5;
  const tiles = Array.from(slide.left.keys()).filter(shown);
  context.fillStyle = colour(outlined ? "--outline" : "--grid");
  fill(context, at, slide, tiles, outlined ? 0.5 : 0);
  if (outlined) for (const tile of tiles) context.clearRect(...square(at, slide, tile, 1.5));
}

/** Left, top, width and height of a tile on the screen, on whole and half pixels. */
export function square(
  at: Place,
  slide: OpenSlide,
  tile: number,
  inset: number,
): [number, number, number, number] {
  const whole = (value: number) => Math.round(2 * value) / 2;
  const left = whole(at.x + slide.left[tile] * at.scale);
  const top = whole(at.y + slide.top[tile] * at.scale);
  const right = whole(at.x + (slide.left[tile] + slide.side) * at.scale);
  const bottom = whole(at.y + (slide.top[tile] + slide.side) * at.scale);
  return [
    left + inset,
    top + inset,
    Math.max(right - left - 2 * inset, 1),
    Math.max(bottom - top - 2 * inset, 1),
  ];
}

/** Whether a tile lies in the part that is on the screen. */
export function inView(at: Place, { left, top, side }: OpenSlide): (tile: number) => boolean {
  const [low, high] = [-at.x / at.scale - side, (at.width - at.x) / at.scale];
  const [upper, lower] = [-at.y / at.scale - side, (at.height - at.y) / at.scale];
  return (tile) => left[tile] > low && left[tile] < high && top[tile] > upper && top[tile] < lower;
}

/** Tiles outlined alike, for readers that must not know their rank. */
export function blindPainter(tiles: number[]): Painter {
  return (context, at, slide) => {
    if (slide.pyramid === null) paintLattice(context, at, slide);
    const shown = tiles.filter(inView(at, slide));
    frame(context, at, slide, shown);
    context.fillStyle = "#ffd60a";
    fill(context, at, slide, shown, 3);
    for (const tile of shown) context.clearRect(...square(at, slide, tile, 5));
  };
}
