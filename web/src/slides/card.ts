/** A slide as a card: its map, whether the map's first tiles carry the decision, its class. */

import { h } from "../page/dom";
import { counted } from "../page/format";
import { formatLink } from "../page/link";
import type { AuditPayload } from "../page/payload";
import { mapPicture } from "../tiles/mapPicture";

/** What becomes of the decision under the map's order: a bold beginning and the rest. */
export function fateOf(payload: AuditPayload, index: number): { bold: string; rest: string } {
  const gallery = payload.gallery!;
  const n = payload.slides.n[index];
  switch (gallery.fate[index]) {
    case "carried": {
      const count = gallery.counts[payload.map][index]!;
      const verb = count === 1 ? "carries" : "carry";
      return { bold: counted(count, "tile"), rest: ` of ${n} ${verb} the decision` };
    }
    case "survives":
      return {
        bold: "Decision survives",
        rest: ` without the map's first ${counted(gallery.removed[index], "tile")}`,
      };
    case "not enough":
      return { bold: "Not carried", rest: ": no first tiles are both enough and needed" };
    case "not sure":
      return { bold: "", rest: "Model is not sure of this slide" };
    default:
      return { bold: "", rest: "No tiles were removed" };
  }
}

export const failed = (payload: AuditPayload, index: number) =>
  ["survives", "not enough"].includes(payload.gallery!.fate[index]);

/** For example "demo-0184-1 · B-type", and what it was called where that is something else. */
export function factsOf({ slides, classes }: AuditPayload, index: number): string {
  const label = slides.label[index];
  const called = `called ${classes[slides.predicted[index]]}`;
  if (label === null) return `${slides.id[index]} · ${called}`;
  const wrong = label === slides.predicted[index] ? "" : `, ${called}`;
  return `${slides.id[index]} · ${classes[label]}${wrong}`;
}

/** A card of this width; a click opens the slide where its curves are in the file. */
export function slideCard(
  payload: AuditPayload,
  index: number,
  width: number,
  height: number,
  open: (index: number) => void,
): HTMLElement {
  const { bold, rest } = fateOf(payload, index);
  const facts = factsOf(payload, index);
  const map = payload.gallery!.maps[index];
  const openable = String(index) in payload.details;
  const content = [
    map
      ? mapPicture(map, width, height, `Map of ${payload.slides.id[index]}`)
      : h("div", { class: "map-picture" }),
    h(
      "span",
      { class: "fate" },
      bold ? h("b", { class: failed(payload, index) ? "bad" : null }, bold) : null,
      rest,
    ),
    h("span", { class: "slide-facts", title: facts }, facts),
  ];
  if (!openable) return h("div", { class: "slide-card", "data-index": index }, ...content);
  const link = { slide: payload.slides.id[index], k: null, left: null, right: null };
  const card = h(
    "a",
    { class: "slide-card", "data-index": index, href: formatLink(link) },
    ...content,
  );
  card.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open(index);
  });
  return card;
}
