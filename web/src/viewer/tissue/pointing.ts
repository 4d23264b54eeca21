/** The tile under the pointer: its name and ranks in a hint, and a ring around a tile. */

import { h } from "../../page/dom";
import type { OpenSlide } from "../openSlide";
import type { Place } from "./stage";

/** A hint that follows the pointer over a slide; `hovered` hears of every tile it comes to. */
export function pointing(
  holder: HTMLElement,
  slide: OpenSlide,
  place: () => Place | null,
  hovered: (tile: number | null) => void,
): HTMLElement {
  const hint = h("div", { class: "hint", hidden: true });
  let last: number | null = null;
  const tell = (tile: number | null) => {
    if (tile !== last) hovered(tile);
    last = tile;
    hint.hidden = tile === null;
  };
  holder.addEventListener("pointermove", (event) => {
    const at = place();
    const box = holder.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    const tile = at && tileAtPoint(slide, (px - at.x) / at.scale, (py - at.y) / at.scale);
    tell(tile);
    if (tile === null) return;
    hint.textContent = describe(slide, tile);
    const fits = py + 16 + hint.offsetHeight < box.height;
    hint.style.left = `${Math.max(4, Math.min(px + 14, box.width - hint.offsetWidth - 4))}px`;
    hint.style.top = `${fits ? py + 16 : py - hint.offsetHeight - 12}px`;
  });
  holder.addEventListener("pointerleave", () => tell(null));
  return hint;
}

/** The topmost tile at a point, in widths of the slide. */
export function tileAtPoint(
  { left, top, side }: Pick<OpenSlide, "left" | "top" | "side">,
  x: number,
  y: number,
): number | null {
  for (let i = left.length - 1; i >= 0; i--) {
    const [dx, dy] = [x - left[i], y - top[i]];
    if (dx >= 0 && dy >= 0 && dx < side && dy < side) return i;
  }
  return null;
}

function describe({ data, names, ranks }: OpenSlide, tile: number): string {
  const lines = data.columns.map((name) => `${names[name]}: rank ${ranks[name][tile]}`);
  return [data.name(tile), ...lines].join("\n");
}

export function drawRing(
  context: CanvasRenderingContext2D,
  at: Place,
  slide: OpenSlide,
  tile: number,
): void {
  const side = slide.side * at.scale;
  const x = at.x + slide.left[tile] * at.scale + side / 2;
  const y = at.y + slide.top[tile] * at.scale + side / 2;
  for (const [width, shade] of [
    [6, "#fff"],
    [3, "#111"],
  ] as const) {
    context.beginPath();
    context.arc(x, y, Math.max(side * 0.78, 9), 0, 2 * Math.PI);
    context.lineWidth = width;
    context.strokeStyle = shade;
    context.stroke();
  }
}
