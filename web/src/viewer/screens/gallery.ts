/** Screen of the gallery: the first K tiles as pictures in order, linked to the slide. */

import { h } from "../../page/dom";
import { counted, fixed } from "../../page/format";
import type { OpenSlide } from "../openSlide";
import { kControl } from "../parts/kControl";
import { type Picture, pictureGrid } from "../parts/pictureGrid";
import { readerPanel } from "../parts/readerPanel";
import { slideBar } from "../parts/slideBar";
import { pairOf, type ScreenView, type Session, startIndex } from "../session";
import { blindPainter, revealPainter } from "../tissue/painters";
import { stage } from "../tissue/stage";

/** More pictures than a reader looks at; the slider goes on, the note says so. */
const MOST = 256;

export function galleryScreen(session: Session, slide: OpenSlide): ScreenView {
  const { data } = slide;
  const pair = pairOf(session, slide);
  const kMax = Math.max(session.cohort.audit.k_max, data.ks[data.ks.length - 1]);
  let side: 0 | 1 = 0;
  let blinded = false;
  const view = stage(slide, "The slide of these tiles", session.state.viewport);
  const head = h("div", { class: "stage-head" });
  const note = h("p", { class: "soft", role: "status" });
  const bar = slideBar(session, slide);
  const grid = pictureGrid(slide, {
    hover: (tile) => view.highlight(tile),
    choose: (tile) => view.centre(tile),
    mark: (picture, opinion) => panel.send(picture.tile, opinion, rankings(picture.tile)),
  });
  view.onHover((tile) => grid.highlight(tile));
  const panel = readerPanel(slide, (on) => {
    blinded = on;
    bar.classList.toggle("blinded", on);
    show(control.index());
  });

  /** The rankings that have a tile among their first K, with its rank. */
  function rankings(tile: number): { ranking: string; rank: number }[] {
    const k = data.ks[control.index()];
    const both = [...new Set(pair)].map((name) => ({
      ranking: name,
      rank: slide.ranks[name][tile],
    }));
    return both.filter(({ rank }) => rank <= k);
  }

  function show(index: number): void {
    const k = data.ks[index];
    const pictures = blinded
      ? blindPictures(slide, pair, k)
      : orderedPictures(slide, pair[side], k);
    const shown = pictures.slice(0, MOST);
    grid.show(shown, blinded, panel.marks());
    view.setPainter(
      blinded ? blindPainter(shown.map((one) => one.tile)) : revealPainter(pair[side], k, kMax),
    );
    head.replaceChildren(...(blinded ? [h("strong", {}, "Rankings hidden")] : [sides()]));
    const cut = pictures.length > MOST ? ` (the first ${MOST} are shown)` : "";
    note.textContent = blinded
      ? `${counted(pictures.length, "tile")}, from both rankings, in random order${cut}`
      : `the first ${counted(pictures.length, "tile")} of ${pair[side]}, in order${cut}; ${DELTA}`;
  }

  function sides(): HTMLElement {
    const button = (i: 0 | 1) => {
      const one = h(
        "button",
        { type: "button", "aria-pressed": String(side === i), id: `gallery-${"ab"[i]}` },
        h("span", { class: `letter letter-${"ab"[i]}` }, "AB"[i]),
        pair[i],
      );
      one.addEventListener("click", () => {
        side = i;
        show(control.index());
        one.ownerDocument.getElementById(one.id)?.focus();
      });
      return one;
    };
    return h(
      "div",
      { class: "buttons", role: "group", "aria-label": "Ranking" },
      button(0),
      button(1),
    );
  }

  const start = startIndex(session, slide, pair, 16);
  const control = kControl(data.ks, start, { left: 9, right: 9 }, show, (index) =>
    session.remember({ k: data.ks[index] }),
  );
  show(start);
  return {
    element: h(
      "div",
      { class: "screen gallery-screen" },
      bar,
      h(
        "div",
        { class: "gallery-body" },
        h(
          "section",
          { "aria-label": "The slide" },
          head,
          view.element,
          control.element,
          panel.element,
        ),
        h("section", { "aria-label": "First tiles" }, note, grid.element),
      ),
    ),
    key: control.key,
    close() {
      control.stop();
      view.close();
    },
  };
}

const DELTA = "Δp: what p loses when the tiles up to this one are removed";

export function orderedPictures(slide: OpenSlide, column: string, k: number): Picture[] {
  const deleted = slide.deletions[column];
  return Array.from(slide.data.order[column].slice(0, k), (tile, i) => {
    const at = deleted ? deleted.ks.indexOf(i + 1) : -1;
    const drop = at < 0 ? null : slide.data.full - deleted.p[at];
    return { tile, rank: i + 1, text: drop === null ? "" : `Δp ${fixed(drop, 3)}` };
  });
}

/** First tiles of both rankings in an order that tells nothing, the same at every visit. */
export function blindPictures(slide: OpenSlide, pair: [string, string], k: number): Picture[] {
  const tiles = new Set(pair.flatMap((name) => Array.from(slide.data.order[name].slice(0, k))));
  const mixed = (tile: number) => {
    let hash = Math.imul(tile + 1, 0x9e3779b1) ^ Math.imul(slide.number + 1, 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
    return (hash ^ (hash >>> 13)) >>> 0;
  };
  return [...tiles]
    .sort((a, b) => mixed(a) - mixed(b) || a - b)
    .map((tile) => ({ tile, rank: null, text: "" }));
}
