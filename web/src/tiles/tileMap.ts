/** Map of the tiles of a slide: the first K coloured by rank, on the tissue or on a lattice. */

import { onResize } from "../charts/resize";
import { sizeCanvas } from "../charts/sharp";
import { h } from "../page/dom";
import { onTheme } from "../page/theme";
import { fit, type Corners, neighbour, type TileLayout, tileAt } from "./tileLayout";
import { paintTiles, type Revealed } from "./tilePaint";
import type { Tissue } from "./tissue";

export interface TileMap {
  element: HTMLElement;
  reveal(order: ArrayLike<number>, k: number, shared: Set<number>, description: string): void;
  /** Ring one tile; null for none. */
  select(tile: number | null): void;
}

const KEYS =
  "Arrow keys go from tile to tile, Home to the first one in the order, Escape selects none.";

/** `tell` describes a tile; `picked` is called when the reader selects one or none. */
export function tileMap(
  corners: Corners,
  tissue: Tissue | null,
  kMax: number,
  tell: (tile: number) => string,
  picked: (tile: number | null) => void,
): TileMap {
  const canvas = h("canvas", {
    class: "tiles",
    role: "application",
    "aria-roledescription": "tile map",
    tabindex: 0,
  });
  const hint = h("div", { class: "hint", role: "status", hidden: true });
  const element = h("div", { class: "tile-map" }, canvas, hint);
  let layout: TileLayout | null = null;
  let revealed: Revealed | null = null;
  let selected: number | null = null;

  const draw = () => {
    if (layout && revealed) paintTiles(canvas, layout, tissue, revealed, kMax, selected);
  };
  const say = (tile: number | null) => {
    hint.hidden = tile === null;
    if (tile === null || layout === null) return;
    hint.textContent = tell(tile);
    const right = Math.max(layout.width - hint.offsetWidth, 0);
    hint.style.left = `${Math.min(layout.left[tile] + layout.side + 6, right)}px`;
    hint.style.top = `${layout.top[tile] + layout.side + 6}px`;
  };
  const select = (tile: number | null) => {
    selected = tile;
    draw();
  };
  const pick = (tile: number | null) => {
    picked(tile);
    say(tile);
  };
  const under = (event: MouseEvent): number | null => {
    const box = canvas.getBoundingClientRect();
    return layout && tileAt(layout, event.clientX - box.left, event.clientY - box.top);
  };

  canvas.addEventListener("pointermove", (event) => {
    if (event.pointerType === "mouse") say(under(event) ?? selected);
  });
  canvas.addEventListener("pointerleave", () => say(selected));
  canvas.addEventListener("click", (event) => pick(under(event)));
  canvas.addEventListener("blur", () => say(null));
  canvas.addEventListener("keydown", (event) => {
    if (layout === null || revealed === null) return;
    const first = revealed.order[0];
    if (event.key === "Escape" && selected !== null) pick(null);
    else if (event.key === "Home") pick(first);
    else if (event.key.startsWith("Arrow"))
      pick(selected === null ? first : neighbour(layout, selected, event.key));
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  onResize(element, () => {
    const width = element.clientWidth;
    if (width === 0) return;
    layout = fit(corners, width, Math.min(440, Math.max(260, width)));
    sizeCanvas(canvas, layout.width, layout.height);
    canvas.style.height = `${layout.height}px`;
    draw();
  });
  onTheme(element, draw);
  void tissue?.ready.then(() => {
    if (tissue.image !== null) canvas.dataset.tissue = "shown";
    draw();
  });
  return {
    element,
    reveal(order, k, shared, description) {
      canvas.setAttribute("aria-label", `${description}. ${KEYS}`);
      canvas.dataset.k = String(k);
      revealed = { order, k, shared };
      draw();
    },
    select,
  };
}
