/** View of one slide: its map, keep and remove curves, a slider over K, and tiles of two orders. */

import { logSlider } from "../charts/logSlider";
import { h } from "../page/dom";
import { counted, fixed } from "../page/format";
import { type Link, startingPair } from "../page/link";
import type { AuditPayload } from "../page/payload";
import { colourBar } from "../tiles/colourBar";
import { mapPicture } from "../tiles/mapPicture";
import { pairCurves } from "./curves";
import { type SlideData, slideData } from "./data";
import { fateOf } from "./card";
import { NO_SET } from "./minimum";
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
  link: Link,
  actions: SlideActions,
): HTMLElement {
  const data = slideData(payload, index, VIEW);
  const columnOf = (name: string) => payload.rankings.find((r) => r.name === name)?.columns[0];
  const best = payload.carried?.best ?? payload.headline;
  const map = columnOf(payload.map) ?? data.columns[0];
  const beside = columnOf(best) ?? map;
  const called = (column: string) =>
    column === map ? payload.map_called : column === beside ? "best order" : null;
  const pair = startingPair(data.columns, map, beside, link);
  const predicted = payload.classes[payload.slides.predicted[index]];
  const change = () => {
    move(at);
    tellChoice();
  };
  const pick = (tile: number | null) => {
    for (const side of sides) side.select(tile);
  };
  const sides = (["left", "right"] as const).map((id, i) =>
    slideSide(id, pair[i], data, called, payload.k_max, change, pick),
  );
  const curves = pairCurves(
    payload,
    data,
    data.removed,
    [map, beside],
    [payload.map_called, "best order"],
    predicted,
    (k) => {
      move(data.ks.findLastIndex((one) => one <= k));
      tellChoice();
    },
  );
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
    curves.setCursor(k);
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

  const counts = payload.gallery?.counts ?? {};
  const carried = counts[payload.map]?.[index] ?? counts[best]?.[index] ?? null;
  const start = link.k ?? carried ?? data.msk[beside] ?? data.msk[pair[0]] ?? 1;
  move(data.ks.findLastIndex((k) => k <= start));
  const [legend, chart] = curves.chart.body;
  return h(
    "article",
    { class: "slide", "aria-labelledby": "slide-name" },
    head(payload.slides.id[index], actions),
    h("p", { class: "facts" }, facts(payload, index)),
    h("p", { class: "read", id: "deciding" }, ...deciding(payload, index)),
    h(
      "div",
      { class: "map-and-curves" },
      bigMap(payload, index),
      h(
        "div",
        {},
        h("div", { class: "figure-head" }, legend, shownK),
        chart,
        slider.element,
        overlap,
      ),
    ),
    data.placed ? null : h("p", { class: "note" }, NOT_PLACED),
    h("div", { class: "maps" }, ...sides.map((side) => side.element)),
    colourBar(payload.k_max, data.tissue !== null),
  );
}

/** Answers and gallery follow the prediction. */
const VIEW = "prediction";

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

/** What carries the decision: under the map, under the best order, and what is proven. */
function deciding(payload: AuditPayload, index: number): (Node | string)[] {
  if (payload.gallery === null) return [];
  const { bold, rest } = fateOf(payload, index);
  const { counts } = payload.gallery;
  const best = payload.carried?.best;
  const other = best ? counts[best]?.[index] : null;
  const proof = payload.slides.proof[index];
  const least = payload.slides.k_star[index];
  const known =
    proof === "none, proven"
      ? `; ${NO_SET.toLowerCase()}`
      : least === null
        ? ""
        : `; proven minimum ${proof === "exact" ? "" : "at least "}${least}`;
  return [
    h("b", {}, bold),
    rest,
    other == null ? "" : `; best order: ${counted(other, "tile")}`,
    known,
  ];
}

function bigMap(payload: AuditPayload, index: number): HTMLElement {
  const map = payload.gallery?.maps[index];
  const place = h("div", { class: "big-map" });
  if (map) place.append(mapPicture(map, 420, 300, `Map of ${payload.slides.id[index]}`));
  return place;
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
