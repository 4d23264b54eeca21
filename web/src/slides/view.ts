/** View of one slide: reveal curves, a slider over K, and tile maps of two rankings. */

import { logSlider } from "../charts/logSlider";
import { h } from "../page/dom";
import { fixed } from "../page/format";
import { type Link, startingPair } from "../page/link";
import type { AuditPayload, View } from "../page/payload";
import { colourBar } from "../tiles/colourBar";
import { slideCurves } from "./curves";
import { type SlideData, slideData } from "./data";
import { decidingText } from "./minimum";
import { slideSide } from "./side";
import { jaccard } from "../tiles/tileLayout";

export interface SlideActions {
  /** Called when the reader has chosen another K or another ranking. */
  chosen: (link: Link) => void;
  step: (by: number) => void;
  close: () => void;
}

export function slideView(
  payload: AuditPayload,
  index: number,
  view: View,
  link: Link,
  actions: SlideActions,
): HTMLElement {
  const data = slideData(payload, index, view);
  const headline = payload.rankings.find((r) => r.name === payload.headline)!.columns[0];
  const pair = startingPair(data.columns, payload.answers?.map ?? "native", headline, link);
  const change = () => {
    curves.mark(sides.map((side) => side.column()));
    move(at);
    tellChoice();
  };
  const pick = (tile: number | null) => {
    for (const side of sides) side.select(tile);
  };
  const sides = (["left", "right"] as const).map((id, i) =>
    slideSide(id, pair[i], data, payload.k_max, change, pick),
  );
  const curves = slideCurves(payload, data, targetName(payload, index, view), (step) => {
    move(step);
    tellChoice();
  });
  const last = data.ks.length - 1;
  const slider = logSlider({
    ks: data.ks,
    label: "Tiles revealed, K",
    edges: curves.edges,
    move: (index) => move(index),
    settle: () => tellChoice(),
  });
  const shownK = h("output", { id: "k-value", for: "k-slider" });
  const overlap = h("p", { class: "read", id: "jaccard", role: "status" });
  let at = 0;

  function move(to: number): void {
    at = Math.min(Math.max(to, 0), last);
    const k = data.ks[at];
    slider.set(at);
    shownK.textContent = `K = ${k}`;
    curves.chart.drawn.setCursor(at);
    const [first, second] = sides.map((side) => data.order[side.column()].slice(0, k));
    const shared = new Set(first.filter((tile) => second.includes(tile)));
    for (const side of sides) side.show(at, shared);
    overlap.textContent = [
      `Shared by both: ${shared.size} of ${first.length} tiles`,
      `Jaccard ${fixed(jaccard(first, second, k), 2)}`,
      ...randomText(data, at),
    ].join(" · ");
  }

  function tellChoice(): void {
    const [left, right] = sides.map((side) => side.column());
    actions.chosen({ slide: payload.slides.id[index], k: data.ks[at], left, right });
  }

  const start = link.k ?? data.msk[headline] ?? data.msk[pair[0]] ?? 1;
  curves.mark(pair);
  move(data.ks.findLastIndex((k) => k <= start));
  const [legend, chart] = curves.chart.body;
  const orders = [payload.answers?.map ?? "native", payload.answers?.candidate ?? null];
  const decided = decidingText(payload, index, orders);
  return h(
    "article",
    { class: "slide", "aria-labelledby": "slide-name" },
    head(payload.slides.id[index], actions),
    h("p", { class: "facts" }, facts(payload, index)),
    h("p", { class: "read", id: "deciding" }, decided ?? ""),
    h("div", { class: "figure-head" }, legend, shownK),
    chart,
    slider.element,
    overlap,
    data.placed ? null : h("p", { class: "note" }, NOT_PLACED),
    h("div", { class: "maps" }, ...sides.map((side) => side.element)),
    colourBar(payload.k_max),
  );
}

const NOT_PLACED =
  "This slide has no coordinates: its tiles are drawn on a plain grid, in bag order.";

function head(name: string, { step, close }: SlideActions): HTMLElement {
  const button = (id: string, label: string, click: () => void) => {
    const element = h("button", { type: "button", id }, label);
    element.addEventListener("click", click);
    return element;
  };
  return h(
    "div",
    { class: "slide-head" },
    h("h3", { id: "slide-name", tabindex: -1 }, name),
    h(
      "div",
      { class: "buttons" },
      button("previous-slide", "← Previous", () => step(-1)),
      button("next-slide", "Next →", () => step(1)),
      button("close-slide", "Close", close),
    ),
  );
}

function randomText(data: SlideData, at: number): string[] {
  if (data.random === null) return [];
  const [low, mean, high] = (["low", "mean", "high"] as const).map((end) =>
    fixed(data.random![end][at], 2),
  );
  return [`random order p = ${mean} (${low} to ${high})`];
}

function targetName({ slides, classes }: AuditPayload, index: number, view: View): string {
  const label = slides.label[index];
  return classes[view === "label" && label !== null ? label : slides.predicted[index]];
}

function facts({ slides, classes }: AuditPayload, index: number): string {
  const label = slides.label[index];
  const predicted = slides.predicted[index];
  return [
    `patient ${slides.case[index]}`,
    label === null ? "no label" : `label ${classes[label]}`,
    `predicted ${classes[predicted]} with p = ${fixed(slides.p[index])} from all ${slides.n[index]} candidate tiles`,
    ...(label !== null && label !== predicted ? ["misclassified"] : []),
  ].join(" · ");
}
