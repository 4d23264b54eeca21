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
    const outlined = side >= 7;
    for (const [shade, tiles] of shades) {
      context.fillStyle = rankColour(kMax ** (shade / SHADES), kMax, dark);
      context.globalAlpha = onTissue && side >= 4 ? 0.38 : 1;
      context.beginPath();
      for (const tile of tiles) square(context, at, slide, tile, 0);
      context.fill();
      context.globalAlpha = 1;
      if (outlined) outline(context, at, slide, tiles, context.fillStyle as string, onTissue);
    }
    if (end >= 1) paintNewest(context, at, slide, order[end - 1]);
  };
}

/** Outlines that keep a contrast on any tissue: a dark line outside, the colour, a light line. */
function outline(
  context: CanvasRenderingContext2D,
  at: Place,
  slide: OpenSlide,
  tiles: number[],
  shade: string,
  onTissue: boolean,
): void {
  const lines = onTissue
    ? ([
        [0.5, 1.5, "#10131a"],
        [2, 1.5, "#fff"],
        [3.25, 1.5, shade],
      ] as const)
    : ([[0.5, 1, colour("--page")]] as const);
  for (const [inset, width, line] of lines) {
    context.beginPath();
    for (const tile of tiles) square(context, at, slide, tile, inset);
    context.lineWidth = width;
    context.strokeStyle = line;
    context.stroke();
  }
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
    context.beginPath();
    square(context, at, slide, tile, -1.5);
    context.lineWidth = width;
    context.strokeStyle = shade;
    context.stroke();
  }
}

/** Every tile as an empty square, for slides without an image. */
export function paintLattice(context: CanvasRenderingContext2D, at: Place, slide: OpenSlide): void {
  const side = slide.side * at.scale;
  const shown = inView(at, slide);
  context.beginPath();
  for (let tile = 0; tile < slide.left.length; tile++)
    if (shown(tile)) square(context, at, slide, tile, side > 5 ? 0.8 : 0);
  if (side > 5) {
    context.strokeStyle = colour("--outline");
    context.lineWidth = 0.75;
    context.stroke();
  } else {
    context.fillStyle = colour("--grid");
    context.fill();
  }
}

export function square(
  context: CanvasRenderingContext2D,
  at: Place,
  slide: OpenSlide,
  tile: number,
  inset: number,
): void {
  const side = Math.max(slide.side * at.scale, 2);
  context.rect(
    at.x + slide.left[tile] * at.scale + inset,
    at.y + slide.top[tile] * at.scale + inset,
    Math.max(side - 2 * inset, 1),
    Math.max(side - 2 * inset, 1),
  );
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
    outline(context, at, slide, shown, "#ffd60a", true);
  };
}
