/** Interactive parts of an audit's page: figures, table of slides, and the open slide. */

import { commonScale, drawInterval, drawScale } from "./charts/intervals";
import { carriedFigure } from "./figures/carried";
import { deletionFigure } from "./figures/deletion";
import { revealFigure } from "./figures/reveal";
import { sceneOf } from "./figures/scene";
import { selectedOnlyFigure } from "./figures/selectedOnly";
import { slideBySlideFigure } from "./figures/slideBySlide";
import { stripFigure, survivalFigure } from "./figures/tilesNeeded";
import { answerSlides } from "./figures/answerSlides";
import { find } from "./page/dom";
import { formatLink, type Link, parseLink } from "./page/link";
import type { AuditPayload, Mean, View } from "./page/payload";
import type { Row } from "./slides/rows";
import { slideTable } from "./slides/table";
import { slideView } from "./slides/view";

export function startAuditPage(payload: AuditPayload): void {
  let view = payload.first_view;
  drawEvidence();

  const drawFigures = () => {
    const scene = sceneOf(payload, view);
    const parts = [
      carriedFigure(scene),
      stripFigure(scene, "needed", slides.open),
      slideBySlideFigure(scene, slides.open),
      survivalFigure(scene),
      stripFigure(scene, "decisive", slides.open),
      revealFigure(scene),
      deletionFigure(scene),
      selectedOnlyFigure(scene),
    ];
    find("#figures")!.replaceChildren(...parts.filter((part) => part !== null));
  };
  const slides = startSlides(payload, () => view);
  const show = (next: View) => {
    view = next;
    document.documentElement.dataset.view = view;
    for (const input of document.querySelectorAll<HTMLInputElement>("input[name^=view]"))
      input.checked = input.value === view;
    drawFigures();
    slides.setView();
  };
  for (const input of document.querySelectorAll<HTMLInputElement>("input[name^=view]")) {
    input.addEventListener("change", () => show(input.value as View));
  }
  show(view);
  find("#answer-slides")?.replaceChildren(...answerSlides(payload, slides.open));
}

interface Slides {
  setView(): void;
  open(index: number): void;
}

function startSlides(payload: AuditPayload, view: () => View): Slides {
  const place = find("#slide-view")!;
  let open: number | null = null;
  let link: Link = parseLink("");

  const table = slideTable(payload, view(), (row) => go({ ...parseLink(""), slide: row.id }, true));
  find("#slides-here")!.replaceChildren(table.element);

  function go(next: Link, focus: boolean): void {
    remember(next, "pushState");
    show(next, focus);
  }

  function show(next: Link, focus: boolean): void {
    link = next;
    const index = next.slide === null ? -1 : payload.slides.id.indexOf(next.slide);
    open = index >= 0 && String(index) in payload.details ? index : null;
    render();
    if (open !== null && focus) {
      place.scrollIntoView({ block: "start" });
      find("#slide-name")?.focus({ preventScroll: true });
    }
  }

  function render(): void {
    table.markOpen(open);
    if (open === null) return place.replaceChildren();
    const chosen = (now: Link) => {
      link = now;
      remember(now, "replaceState");
    };
    place.replaceChildren(slideView(payload, open, view(), link, { chosen, step, close }));
  }

  function step(by: number): void {
    const rows: Row[] = table.openable();
    if (!rows.length) return;
    const here = rows.findIndex((row) => row.index === open);
    const next = rows[(here + by + rows.length) % rows.length];
    go({ slide: next.id, k: null, left: link.left, right: link.right }, false);
    find(by > 0 ? "#next-slide" : "#previous-slide")?.focus({ preventScroll: true });
  }

  function close(): void {
    const row = find(`tr[data-index="${open}"] a`);
    go(parseLink(""), false);
    row?.focus();
  }

  place.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
  });
  window.addEventListener("popstate", () => {
    // A link to a section of the page keeps the slide open.
    if (!location.hash || parseLink(location.hash).slide !== null)
      show(parseLink(location.hash), true);
  });
  show(parseLink(location.hash), true);
  return {
    open: (index) => go({ ...parseLink(""), slide: payload.slides.id[index] }, true),
    setView() {
      table.setView(view());
      render();
    },
  };
}

/** Put the link into the address bar, if the browser allows it (not in a sandboxed frame). */
function remember(link: Link, how: "pushState" | "replaceState"): void {
  try {
    history[how](
      null,
      "",
      link.slide === null ? location.pathname + location.search : formatLink(link),
    );
  } catch {
    return;
  }
}

/** Draw the intervals of the comparisons; the page's text carries the numbers. */
function drawEvidence(): void {
  const places = [...document.querySelectorAll<HTMLElement>("[data-estimate]")];
  const end = (text: string | undefined): number | null => (text ? Number(text) : null);
  const value = ({ dataset }: HTMLElement): Mean => ({
    estimate: Number(dataset.estimate),
    low: end(dataset.low),
    high: end(dataset.high),
  });
  const scale = commonScale(places.map(value), [-1, 1]);
  for (const place of places)
    place.replaceChildren(drawInterval(value(place), scale, place.dataset.name!));
  for (const place of document.querySelectorAll(".plot-scale"))
    place.replaceChildren(drawScale(scale, "net share of slides"));
}
