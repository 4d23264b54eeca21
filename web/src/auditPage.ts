/** Interactive parts of an audit's page: the chart, slides with their maps, and the open slide. */

import { commonScale, drawInterval, drawScale, type Interval } from "./charts/intervals";
import { carriedChart, carriedCsv, drawCarried } from "./figures/carried";
import { deletionFigure } from "./figures/deletion";
import { revealFigure } from "./figures/reveal";
import { sceneOf } from "./figures/scene";
import { find, h } from "./page/dom";
import { formatLink, type Link, parseLink } from "./page/link";
import type { AuditPayload, Carried } from "./page/payload";
import { copyText, pngOf, saveFile, svgText } from "./page/save";
import { colour } from "./page/theme";
import { slideCard } from "./slides/card";
import { slideGallery } from "./slides/gallery";
import { slideView } from "./slides/view";

export function startAuditPage(payload: AuditPayload): void {
  const { carried, gallery } = payload;
  if (carried) {
    find("#chart")!.replaceChildren(
      carriedChart(carried, payload.map_called, CHART, true),
      shaded(carried),
    );
    startSaving(carried, payload.map_called);
  }
  startCopying();
  if (gallery) {
    const cards = gallery.first.map((i) => slideCard(payload, i, 276, 176, (at) => open(at)));
    find("#first-slides")!.replaceChildren(...cards);
  }
  const open = startSlides(payload);
  // Charts behind the fold are drawn when it opens: before that they have no width.
  const fold = find<HTMLDetailsElement>("#details")!;
  const unfold = () => {
    if (!fold.open || find("#figures")!.childElementCount) return;
    const scene = sceneOf(payload, payload.first_view);
    find("#figures")!.replaceChildren(revealFigure(scene), deletionFigure(scene));
    drawEvidence();
  };
  fold.addEventListener("toggle", unfold);
  unfold();
}

const CHART = 372;

function shaded({ lines }: Carried): HTMLElement | string {
  const banded = Object.values(lines).some(({ low }) => low.some((end) => end !== null));
  const said =
    "Shaded: intervals over patients. Orders are compared slide by slide: shades may overlap.";
  return banded ? h("figcaption", {}, said) : "";
}

function startSaving(chart: Carried, map: string): void {
  const [width, name] = [900, `${document.title.split(":")[0].replace(/[^\w.-]+/g, "-")}-carried`];
  const svg = () => drawCarried(chart, map, width, CHART, true);
  const text = () => svgText(svg(), colour("--page"));
  find("#save-svg")!.addEventListener("click", () =>
    saveFile(`${name}.svg`, text(), "image/svg+xml"),
  );
  find("#save-png")!.addEventListener("click", () => {
    const height = Number(svg().getAttribute("height"));
    void pngOf(text(), width, height).then((blob) => saveFile(`${name}.png`, blob));
  });
  find("#save-data")!.addEventListener("click", () =>
    saveFile(`${name}.csv`, carriedCsv(chart), "text/csv"),
  );
}

function startCopying(): void {
  const button = find<HTMLButtonElement>("#copy-methods")!;
  const says = button.textContent!;
  button.addEventListener("click", async () => {
    const done = await copyText(find("#methods")!.textContent!);
    button.textContent = done ? "Copied" : "Not allowed here: see Details";
    setTimeout(() => (button.textContent = says), 2500);
  });
}

/** Gallery and open slide; returns what opens a slide. */
function startSlides(payload: AuditPayload): (index: number) => void {
  const place = find("#slide-view")!;
  let open: number | null = null;
  let link: Link = parseLink("");

  const goTo = (index: number) => go({ ...parseLink(""), slide: payload.slides.id[index] }, true);
  const gallery = slideGallery(payload, goTo);
  find("#gallery")!.replaceChildren(gallery.element);

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
    gallery.markOpen(open);
    if (open === null) return place.replaceChildren();
    const chosen = (now: Link) => {
      link = now;
      remember(now, "replaceState");
    };
    place.replaceChildren(slideView(payload, open, link, { chosen, step, close }));
  }

  function step(by: number): void {
    const slides = gallery.openable();
    if (!slides.length) return;
    const here = slides.indexOf(open!);
    const next = slides[(here + by + slides.length) % slides.length];
    go({ slide: payload.slides.id[next], k: null, left: link.left, right: link.right }, false);
    find(by > 0 ? "#next-slide" : "#previous-slide")?.focus({ preventScroll: true });
  }

  function close(): void {
    const card = find(`#gallery [data-index="${open}"]`);
    go(parseLink(""), false);
    card?.focus();
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
  return goTo;
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
  const value = ({ dataset }: HTMLElement): Interval => ({
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
