/** Pictures of tiles in a grid; a slide without an image shows numbered squares. */

import { h } from "../../page/dom";
import type { OpenSlide } from "../openSlide";
import { tileUrl } from "../server";

export interface Picture {
  tile: number;
  /** Null where it must not be known. */
  rank: number | null;
  text: string;
}

export const OPINIONS = ["relevant", "unsure", "irrelevant"] as const;
export type Opinion = (typeof OPINIONS)[number];

export interface PictureGrid {
  element: HTMLElement;
  show(pictures: Picture[], marking: boolean, marks: Map<number, Opinion>): void;
  highlight(tile: number | null): void;
}

interface Actions {
  hover: (tile: number | null) => void;
  choose: (tile: number) => void;
  mark: (picture: Picture, opinion: Opinion) => Promise<boolean>;
}

export function pictureGrid(slide: OpenSlide, actions: Actions): PictureGrid {
  const list = h("ol", { class: "pictures" });
  let cells = new Map<number, HTMLElement>();
  let marked: HTMLElement | null = null;

  function cell(picture: Picture, marking: boolean, marks: Map<number, Opinion>): HTMLElement {
    const { tile, rank, text } = picture;
    const name = rank === null ? slide.data.name(tile) : `Rank ${rank}, ${slide.data.name(tile)}`;
    const button = h("button", { type: "button", class: "picture", title: "Show on the slide" });
    button.append(
      slide.pyramid
        ? h("img", { src: tileUrl(slide.number, slide.pyramid, tile), alt: name, loading: "lazy" })
        : h("span", { class: "no-picture", role: "img", "aria-label": name }, rank ?? tile),
    );
    const element = h(
      "li",
      { "data-tile": tile },
      button,
      h(
        "span",
        { class: "caption" },
        rank === null ? null : h("b", {}, `#${rank}`),
        text ? ` ${text}` : null,
      ),
      marking ? opinions(picture, marks) : null,
    );
    button.addEventListener("click", () => actions.choose(tile));
    for (const [event, value] of [
      ["pointerenter", tile],
      ["pointerleave", null],
      ["focusin", tile],
      ["focusout", null],
    ] as const)
      element.addEventListener(event, () => actions.hover(value));
    button.querySelector("img")?.addEventListener("error", () => {
      button.replaceChildren(
        h("span", { class: "no-picture", role: "img", "aria-label": name }, "no picture"),
      );
    });
    return element;
  }

  function opinions(picture: Picture, marks: Map<number, Opinion>): HTMLElement {
    const buttons = OPINIONS.map((opinion) => {
      const chosen = marks.get(picture.tile) === opinion;
      const button = h("button", { type: "button", "aria-pressed": String(chosen) }, opinion);
      button.addEventListener("click", async () => {
        if (!(await actions.mark(picture, opinion))) return;
        for (const one of buttons) one.setAttribute("aria-pressed", String(one === button));
      });
      return button;
    });
    const label = `What do you think of ${slide.data.name(picture.tile)}?`;
    return h("span", { class: "opinions", role: "group", "aria-label": label }, ...buttons);
  }

  let before = { marking: false, keys: "" };
  return {
    element: list,
    show(pictures, marking, marks) {
      // Pictures that stay are kept, so that a step of the slider loads only what is new.
      const keys = pictures.map((one) => `${one.tile}:${one.rank}`).join(" ");
      if (keys === before.keys && marking === before.marking) return;
      const same = marking === before.marking;
      const kept = new Map<number, HTMLElement>();
      for (const one of pictures) {
        const old = same ? cells.get(one.tile) : undefined;
        const fits = old !== undefined && old.dataset.rank === String(one.rank);
        const element = fits ? old : cell(one, marking, marks);
        element.dataset.rank = String(one.rank);
        kept.set(one.tile, element);
      }
      cells = kept;
      before = { marking, keys };
      list.replaceChildren(...cells.values());
    },
    highlight(tile) {
      marked?.classList.remove("pointed");
      marked = tile === null ? null : (cells.get(tile) ?? null);
      marked?.classList.add("pointed");
    },
  };
}
