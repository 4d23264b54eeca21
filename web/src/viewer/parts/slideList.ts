/** Slides at the left of the open one, with thumbnails where there are images. */

import { h } from "../../page/dom";
import { thumbnailUrl } from "../server";
import { formatState } from "../state";
import type { Session } from "../session";

/** Around the open slide; the slides screen has them all. */
const MOST = 60;

const blank = () => h("span", { class: "no-thumbnail", "aria-hidden": "true" }, "▦");

function thumbnail(number: number): HTMLElement {
  const image = h("img", { src: thumbnailUrl(number), alt: "", loading: "lazy" });
  image.addEventListener("error", () => image.replaceWith(blank()));
  return image;
}

export function slideList(session: Session, open: number): HTMLElement {
  const { audit, flags } = session.cohort;
  const { id, predicted } = audit.slides;
  const here = Math.max(session.listed.indexOf(open), 0);
  const from = Math.max(0, Math.min(here - MOST / 2, session.listed.length - MOST));
  const rows = session.listed.slice(from, from + MOST).map((number) => {
    const state = { ...session.state, slide: id[number], k: null, viewport: null };
    return h(
      "li",
      {},
      h(
        "a",
        { href: formatState(state), "aria-current": number === open ? "true" : null },
        flags.image[number] ? thumbnail(number) : blank(),
        h("span", { class: "list-name" }, id[number]),
        h("span", { class: "soft" }, audit.classes[predicted[number]]),
      ),
    );
  });
  const more = session.listed.length > rows.length;
  const list = h(
    "nav",
    { class: "slide-list", "aria-label": "Slides" },
    h("ol", {}, ...rows),
    more ? h("p", { class: "soft" }, `${rows.length} of ${session.listed.length} slides.`) : null,
  );
  // Scroll within the list alone, never the page.
  requestAnimationFrame(() => {
    const current = list.querySelector<HTMLElement>("[aria-current]");
    if (current) list.scrollTop = current.offsetTop - list.clientHeight / 3;
  });
  return list;
}
