/** Paint tiles on a canvas: outlines, colours by rank, dots for shared tiles, a ring for the last. */

import { colour, theme } from "../page/theme";
import { rankColour } from "./rankColours";
import type { TileLayout } from "./tileLayout";
import { paintTissue, type Tissue } from "./tissue";

/** Side in pixels below which tiles are filled faintly: outlines would be all that is seen. */
const CROWDED = 4;

export interface Revealed {
  order: ArrayLike<number>;
  k: number;
  /** Tiles that the other ranking reveals too. */
  shared: Set<number>;
}

export function paintTiles(
  canvas: HTMLCanvasElement,
  layout: TileLayout,
  tissue: Tissue | null,
  { order, k, shared }: Revealed,
  kMax: number,
  selected: number | null,
): void {
  const context = canvas.getContext("2d")!;
  const onTissue = tissue !== null && tissue.image !== null;
  // Tissue is bright in either theme.
  const dark = theme() === "dark" && !onTissue;
  const { left, top, side } = layout;
  const gap = side > 5 ? 0.5 : 0;
  const box = (tile: number, inset: number, width: number, style: string) => {
    context.strokeStyle = style;
    context.lineWidth = width;
    const size = side - 2 * inset;
    context.strokeRect(left[tile] + inset, top[tile] + inset, size, size);
  };
  context.clearRect(0, 0, layout.width, layout.height);
  if (onTissue) paintTissue(context, layout, tissue);
  const outline = colour("--outline");
  const crowded = side < CROWDED;
  context.fillStyle = outline;
  context.globalAlpha = crowded ? 0.2 : 1;
  for (let tile = 0; tile < left.length && !onTissue; tile++) {
    if (crowded) context.fillRect(left[tile], top[tile], side, side);
    else box(tile, gap + 0.4, 0.75, outline);
  }
  context.globalAlpha = 1;
  // Draw late tiles first, so that early ones are on top where tiles overlap.
  for (let rank = Math.min(k, order.length); rank >= 1; rank--) {
    const tile = order[rank - 1];
    const fill = rankColour(rank, kMax, dark);
    context.fillStyle = fill;
    context.globalAlpha = onTissue ? 0.3 : 1;
    context.fillRect(left[tile] + gap, top[tile] + gap, side - 2 * gap, side - 2 * gap);
    context.globalAlpha = 1;
    if (onTissue) {
      // White around the dark line: one of the two stands out from any stain.
      box(tile, 0.5, 3, "#fff");
      box(tile, 0.75, 1.5, rankColour(Math.min(rank, kMax ** 0.4), kMax, false));
    } else if (!crowded) box(tile, gap + 0.4, 0.75, outline);
    if (shared.has(tile)) dot(context, layout, tile, contrasting(rank, kMax, dark));
  }
  const newest = order[Math.min(k, order.length) - 1];
  box(newest, -1, 2.25, colour("--accent"));
  if (selected !== null) {
    box(selected, -3, 4, colour("--page"));
    box(selected, -3, 2, colour("--text"));
  }
}

function dot(
  context: CanvasRenderingContext2D,
  { left, top, side }: TileLayout,
  tile: number,
  style: string,
): void {
  context.fillStyle = style;
  context.beginPath();
  const radius = Math.max(1, Math.min(side / 6, 3));
  context.arc(left[tile] + side / 2, top[tile] + side / 2, radius, 0, 2 * Math.PI);
  context.fill();
}

/** White on the strong colours of a light page and the weak ones of a dark page, else black. */
function contrasting(rank: number, kMax: number, dark: boolean): string {
  return rank < kMax ** 0.5 === dark ? "#000" : "#fff";
}
