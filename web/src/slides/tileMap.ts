/** Map of the tiles of a slide: the first K coloured by rank, on the tissue or on a lattice. */

import { onResize } from "../charts/resize";
import { sizeCanvas } from "../charts/sharp";
import { h } from "../page/dom";
import { colour, onTheme, theme } from "../page/theme";
import { rankColour } from "./rankColours";
import { fit, type Corners, type TileLayout, tileAt } from "./tileLayout";
import { paintTissue, type Tissue } from "./tissue";

export interface TileMap {
  element: HTMLElement;
  reveal(order: ArrayLike<number>, k: number, shared: Set<number>, description: string): void;
}

export function tileMap(
  corners: Corners,
  tissue: Tissue | null,
  kMax: number,
  tell: (tile: number) => string,
): TileMap {
  const canvas = h("canvas", { class: "tiles", role: "img" });
  const hint = h("div", { class: "hint", hidden: true });
  const element = h("div", { class: "tile-map" }, canvas, hint);
  let layout: TileLayout | null = null;
  let draw = () => {};

  const resize = () => {
    const width = element.clientWidth;
    if (width === 0) return;
    layout = fit(corners, width, Math.min(440, Math.max(260, width)));
    sizeCanvas(canvas, layout.width, layout.height);
    canvas.style.height = `${layout.height}px`;
    draw();
  };
  onResize(element, resize);

  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const tile = layout && tileAt(layout, event.clientX - box.left, event.clientY - box.top);
    hint.hidden = tile === null;
    if (tile === null || layout === null) return;
    hint.textContent = tell(tile);
    hint.style.left = `${Math.min(event.clientX - box.left + 12, Math.max(box.width - 190, 0))}px`;
    hint.style.top = `${event.clientY - box.top + 14}px`;
  });
  canvas.addEventListener("pointerleave", () => (hint.hidden = true));

  onTheme(element, () => draw());
  void tissue?.ready.then(() => {
    if (tissue.image !== null) canvas.dataset.tissue = "shown";
    draw();
  });
  return {
    element,
    reveal(order, k, shared, description) {
      canvas.setAttribute("aria-label", description);
      canvas.dataset.k = String(k);
      draw = () => layout && paint(canvas, layout, tissue, order, k, kMax, shared);
      draw();
    },
  };
}

function paint(
  canvas: HTMLCanvasElement,
  layout: TileLayout,
  tissue: Tissue | null,
  order: ArrayLike<number>,
  k: number,
  kMax: number,
  shared: Set<number>,
): void {
  const context = canvas.getContext("2d")!;
  const dark = theme() === "dark";
  const { left, top, side } = layout;
  const gap = side > 5 ? 0.5 : 0;
  context.clearRect(0, 0, layout.width, layout.height);
  const onTissue = tissue !== null && tissue.image !== null;
  if (onTissue) paintTissue(context, layout, tissue);
  context.strokeStyle = colour("--outline");
  context.lineWidth = 0.75;
  for (let i = 0; i < left.length && !onTissue; i++) {
    context.strokeRect(
      left[i] + gap + 0.4,
      top[i] + gap + 0.4,
      side - 2 * gap - 0.8,
      side - 2 * gap - 0.8,
    );
  }
  // Draw late tiles first, so that early ones are on top where tiles overlap.
  for (let rank = Math.min(k, order.length); rank >= 1; rank--) {
    const tile = order[rank - 1];
    context.fillStyle = rankColour(rank, kMax, dark);
    context.globalAlpha = onTissue ? 0.35 : 1;
    context.fillRect(left[tile] + gap, top[tile] + gap, side - 2 * gap, side - 2 * gap);
    context.globalAlpha = 1;
    if (onTissue) {
      context.strokeStyle = context.fillStyle;
      context.lineWidth = 1.5;
      context.strokeRect(left[tile] + 0.75, top[tile] + 0.75, side - 1.5, side - 1.5);
    }
    if (shared.has(tile)) {
      const light = dark ? rank > Math.sqrt(kMax) : rank < Math.sqrt(kMax);
      context.fillStyle = light ? "#fff" : "#000";
      context.beginPath();
      context.arc(
        left[tile] + side / 2,
        top[tile] + side / 2,
        Math.max(1, Math.min(side / 6, 3)),
        0,
        2 * Math.PI,
      );
      context.fill();
    }
  }
  const newest = order[Math.min(k, order.length) - 1];
  context.strokeStyle = colour("--accent");
  context.lineWidth = 2;
  context.strokeRect(left[newest] - 1, top[newest] - 1, side + 2, side + 2);
}
