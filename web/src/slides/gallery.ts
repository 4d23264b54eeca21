/** Gallery of all slides; only the rows in sight are drawn, so that thousands are no burden. */

import { onResize } from "../charts/resize";
import { h } from "../page/dom";
import { counted, grouped } from "../page/format";
import type { AuditPayload } from "../page/payload";
import { slideCard } from "./card";

export interface Gallery {
  element: HTMLElement;
  /** Slides that can be opened, in the present order and filter. */
  openable(): number[];
  markOpen(index: number | null): void;
}

const CARD = 200;
const GAP = 16;
/** Height of a card's picture over its width, and of the words below it. */
const ASPECT = 0.68;
const WORDS = 62;

export function slideGallery(payload: AuditPayload, open: (index: number) => void): Gallery {
  const { slides, gallery } = payload;
  let shown: number[] = gallery!.order;
  let opened: number | null = null;
  let columns = 1;
  let card = { width: CARD, height: CARD };
  let drawn = "";

  const list = h("ul", { class: "gallery-list" });
  const region = h(
    "div",
    { class: "gallery", tabindex: 0, role: "region", "aria-label": "All slides" },
    list,
  );
  const count = h("p", { class: "count", role: "status" });
  const search = h("input", {
    type: "search",
    placeholder: "Slide, patient or class",
    "aria-label": "Filter by slide, patient or class",
  });
  const order = h(
    "select",
    { "aria-label": "Order of the slides" },
    ...["map fails first", "best first", "by name", "misclassified first"].map((name) =>
      h("option", { value: name }, name),
    ),
  );

  function choose(): void {
    const text = search.value.trim().toLowerCase();
    const label = (i: number) => (slides.label[i] === null ? "" : payload.classes[slides.label[i]]);
    const fits = (i: number) =>
      [slides.id[i], slides.case[i], label(i), payload.classes[slides.predicted[i]]].some((name) =>
        name.toLowerCase().includes(text),
      );
    const kept = gallery!.order.filter((i) => !text || fits(i));
    const wrong = (i: number) =>
      slides.label[i] !== null && slides.label[i] !== slides.predicted[i];
    shown =
      order.value === "best first"
        ? kept.reverse()
        : order.value === "by name"
          ? kept.sort((a, b) => names.compare(slides.id[a], slides.id[b]))
          : order.value === "misclassified first"
            ? [...kept.filter(wrong), ...kept.filter((i) => !wrong(i))]
            : kept;
    count.textContent =
      shown.length === slides.id.length
        ? counted(shown.length, "slide")
        : shown.length
          ? `${grouped(shown.length)} of ${counted(slides.id.length, "slide")}`
          : `None of the ${counted(slides.id.length, "slide")} fits`;
    region.scrollTop = 0;
    layOut();
  }

  function layOut(): void {
    const width = region.clientWidth;
    if (width === 0) return;
    columns = Math.max(1, Math.floor((width + GAP) / (CARD + GAP)));
    card.width = Math.floor((width - GAP * (columns - 1)) / columns);
    card.height = Math.round(card.width * ASPECT);
    const rows = Math.ceil(shown.length / columns);
    list.style.height = `${rows * rowHeight()}px`;
    drawn = "";
    draw();
  }

  const rowHeight = () => card.height + WORDS + GAP;

  function draw(): void {
    const first = Math.max(0, Math.floor(region.scrollTop / rowHeight()) - 1);
    const last = Math.ceil((region.scrollTop + region.clientHeight) / rowHeight()) + 1;
    const key = `${first} ${last}`;
    if (key === drawn) return;
    drawn = key;
    const items = shown.slice(first * columns, last * columns).map((index, i) => {
      const place = first * columns + i;
      const item = h(
        "li",
        { "aria-setsize": shown.length, "aria-posinset": place + 1 },
        slideCard(payload, index, card.width, card.height, open),
      );
      item.style.left = `${(place % columns) * (card.width + GAP)}px`;
      item.style.top = `${Math.floor(place / columns) * rowHeight()}px`;
      item.style.width = `${card.width}px`;
      return item;
    });
    list.replaceChildren(...items);
    mark();
  }

  function mark(): void {
    for (const element of list.querySelectorAll<HTMLElement>(".slide-card")) {
      if (Number(element.dataset.index) === opened) element.setAttribute("aria-current", "true");
      else element.removeAttribute("aria-current");
    }
  }

  search.addEventListener("input", choose);
  order.addEventListener("change", choose);
  region.addEventListener("scroll", draw, { passive: true });
  onResize(region, layOut);
  choose();
  return {
    element: h("div", {}, h("div", { class: "controls" }, search, order, count), region),
    openable: () => shown.filter((index) => String(index) in payload.details),
    markOpen(index) {
      opened = index;
      mark();
    },
  };
}

const names = new Intl.Collator("en", { numeric: true });
