/** One tile, 512 pixels wide, amid its surroundings. */

import { h } from "../../page/dom";
import { largeTileUrl } from "../server";

/** The picture of a tile with its surroundings; the tile itself is framed. */
export function largeTile(number: number, tile: number, name: string): HTMLElement {
  const image = h("img", { src: largeTileUrl(number, tile), alt: name });
  const holder = h("div", { class: "large-tile" }, image, h("span", { class: "large-frame" }));
  image.addEventListener("error", () =>
    holder.replaceChildren(h("p", { class: "no-picture" }, `No picture of ${name}.`)),
  );
  return holder;
}

export function openTile(number: number, tile: number, name: string, text: string): void {
  const close = h("button", { type: "button", class: "close" }, "Close");
  const dialog = h(
    "dialog",
    { class: "tile-dialog", "aria-label": name },
    h("div", { class: "tile-dialog-head" }, h("strong", {}, name), h("span", {}, text), close),
    largeTile(number, tile, name),
  );
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
}
