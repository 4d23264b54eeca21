/**
 * Pictures of the first tiles in order. A bar under each says what is left of the probability
 * without the tiles up to it, and a line stands where the decision flips.
 */

import { h } from "../../page/dom";
import { counted, fixed } from "../../page/format";
import { flipAt, type OpenSlide } from "../openSlide";
import { tileUrl } from "../server";
import { openTile } from "./tileDialog";

/** More pictures than a reader looks at; the note says so. */
const MOST = 128;

export interface TileStrip {
  element: HTMLElement;
  show(column: string, k: number): void;
  highlight(tile: number | null): void;
}

interface Actions {
  hover: (tile: number | null) => void;
  choose: (tile: number) => void;
}

export function tileStrip(slide: OpenSlide, actions: Actions): TileStrip {
  const list = h("ol", { class: "pictures" });
  const note = h("p", { class: "soft", role: "status", id: "strip-note" });
  let cells = new Map<string, HTMLElement>();
  let pointed: HTMLElement | null = null;

  /** What is left of p without the tiles up to a rank; null where it was not measured. */
  function left(column: string, rank: number): number | null {
    const curve = slide.deletions[column];
    const at = curve ? curve.ks.indexOf(rank) : -1;
    return at < 0 ? null : curve.p[at];
  }

  function cell(column: string, tile: number, rank: number): HTMLElement {
    const name = `Rank ${rank}, ${slide.data.name(tile)}`;
    const p = left(column, rank);
    const text =
      p === null ? "" : `p = ${fixed(p)} without ${rank === 1 ? "it" : `the first ${rank} tiles`}`;
    const button = h("button", { type: "button", class: "picture", title: "Look closer" });
    button.append(
      slide.pyramid
        ? h("img", { src: tileUrl(slide.number, slide.pyramid, tile), alt: name, loading: "lazy" })
        : h("span", { class: "no-picture", role: "img", "aria-label": name }, rank),
    );
    button.querySelector("img")?.addEventListener("error", () => {
      button.replaceChildren(
        h("span", { class: "no-picture", role: "img", "aria-label": name }, "no picture"),
      );
    });
    const bar = h("span", { class: "running", title: text });
    const filled = h("span", {});
    filled.style.width = `${100 * (p ?? 0)}%`;
    if (p !== null) bar.append(filled);
    const element = h(
      "li",
      { "data-tile": tile },
      button,
      h(
        "span",
        { class: "caption" },
        h("b", {}, `#${rank}`),
        bar,
        h("span", { class: "hidden" }, text),
      ),
    );
    button.addEventListener("click", () => {
      actions.choose(tile);
      if (slide.pyramid) openTile(slide.number, tile, name, text);
    });
    for (const [event, value] of [
      ["pointerenter", tile],
      ["pointerleave", null],
      ["focusin", tile],
      ["focusout", null],
    ] as const)
      element.addEventListener(event, () => actions.hover(value));
    return element;
  }

  return {
    element: h("div", { class: "strip" }, note, list),
    show(column, k) {
      const order = slide.data.order[column];
      const end = Math.min(k, order.length, MOST);
      const flip = flipAt(slide, column);
      const shown: Node[] = [];
      const kept = new Map<string, HTMLElement>();
      for (let rank = 1; rank <= end; rank++) {
        const key = `${column} ${rank}`;
        const one = cells.get(key) ?? cell(column, order[rank - 1], rank);
        kept.set(key, one);
        shown.push(one);
        if (rank === flip) shown.push(h("li", { class: "flip" }, "decision flips here"));
      }
      cells = kept; // so that a step of the slider loads only what is new
      list.replaceChildren(...shown);
      const cut = k > MOST ? `, ${MOST} of them shown` : "";
      note.textContent = `The first ${counted(Math.min(k, order.length), "tile")} of ${slide.names[column]}${cut}. Bar: probability of ${slide.predicted} that is left without the tiles up to this one.`;
    },
    highlight(tile) {
      pointed?.classList.remove("pointed");
      pointed = tile === null ? null : list.querySelector(`[data-tile="${tile}"]`);
      pointed?.classList.add("pointed");
    },
  };
}
