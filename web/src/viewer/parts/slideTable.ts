/** Table of slides with presets: not sure, falls back, rankings disagree, misclassified. */

import { h } from "../../page/dom";
import { percent, tiles } from "../../page/format";
import { type Column, headCell, minimum, ofTheSlide } from "../../slides/columns";
import { type Direction, type Row, rowsOf, sortRows } from "../../slides/rows";
import type { Session } from "../session";
import type { ViewerCohort } from "../types.generated";
import { neededBy } from "./slideDots";

const PAGE = 100;
/** Rankings disagree where at most one in four of their first tiles is shared. */
const DISAGREE = 0.25;

export interface Preset {
  key: string;
  title: string;
  keeps: (row: Row) => boolean;
}

export function presetsOf({ audit, flags }: ViewerCohort): Preset[] {
  const labelled = audit.slides.label.some((label) => label !== null);
  const apart = ({ index }: Row) => flags.shared[index] !== null && flags.shared[index] <= DISAGREE;
  return [
    { key: "all", title: "All", keeps: () => true },
    { key: "undecided", title: "Not sure", keeps: ({ index }) => flags.undecided[index] },
    { key: "falls-back", title: "Falls back", keeps: ({ index }) => flags.falls_back[index] },
    { key: "disagree", title: "Rankings disagree", keeps: apart },
    ...(labelled ? [{ key: "wrong", title: "Misclassified", keeps: (row: Row) => row.wrong }] : []),
  ];
}

export function columnsOf(cohort: ViewerCohort): Column[] {
  const { audit, flags, native, best, names, shared_of } = cohort;
  const pair = best === null ? [native] : [native, best];
  const { what, counts } = neededBy(cohort, pair);
  const needed = pair.map((name): Column => {
    const count = ({ index }: Row) => counts[name][index];
    return {
      key: `k:${name}`,
      title: `Tiles, ${names[name]}`,
      hint: `${what[0].toUpperCase()}${what.slice(1)} under ${names[name]}, mean over seeds`,
      numeric: true,
      value: (row) => count(row) ?? 2 * audit.k_max,
      text: (row) => (count(row) === null ? "none" : tiles(count(row)!)),
    };
  });
  const shared = ({ index }: Row) => flags.shared[index];
  const common: Column = {
    key: "shared",
    title: `Shared, first ${shared_of}`,
    hint: `Share of the first ${shared_of} tiles that both have in common`,
    numeric: true,
    value: shared,
    text: (row) => percent(shared(row)),
  };
  return [...ofTheSlide(audit), ...needed, ...minimum(audit), ...(best === null ? [] : [common])];
}

export function slideTable(session: Session, open: (number: number) => void): HTMLElement {
  const { cohort } = session;
  const rows = rowsOf(cohort.audit);
  const columns = columnsOf(cohort);
  const presets = presetsOf(cohort);
  let preset = presets[0];
  let text = "";
  let sorted: { column: Column; direction: Direction } | null = null;
  let limit = PAGE;

  const body = h("tbody");
  const count = h("p", { class: "count", role: "status" });
  const more = h("button", { type: "button" }, "Show more");
  const search = h("input", {
    type: "search",
    placeholder: "Slide or patient",
    "aria-label": "Filter by slide or patient",
  });
  const heads = columns.map((column) =>
    headCell(column, () => {
      const up = sorted?.column === column && sorted.direction === "ascending";
      sorted = { column, direction: up ? "descending" : "ascending" };
      render();
    }),
  );
  const buttons = presets.map((one) => {
    const found = rows.filter(one.keeps).length;
    const button = h("button", { type: "button", "data-preset": one.key }, `${one.title} ${found}`);
    button.addEventListener("click", () => {
      preset = one;
      limit = PAGE;
      render();
    });
    return button;
  });

  function render(): void {
    const wanted = text.trim().toLowerCase();
    const named = (row: Row) => `${row.id}\n${row.case}`.toLowerCase().includes(wanted);
    const kept = rows.filter((row) => preset.keeps(row) && named(row));
    const shown = sorted ? sortRows(kept, sorted.column, sorted.direction) : kept;
    session.listed = (shown.length ? shown : rows).map((row) => row.index);
    for (const [i, column] of columns.entries())
      heads[i].setAttribute("aria-sort", sorted?.column === column ? sorted.direction : "none");
    for (const [i, one] of presets.entries())
      buttons[i].setAttribute("aria-pressed", String(one === preset));
    const nothing = h("td", { colspan: columns.length, class: "empty" }, NO_SLIDE);
    body.replaceChildren(
      ...shown.slice(0, limit).map((row) => rowOf(row, columns, open)),
      ...(shown.length ? [] : [h("tr", {}, nothing)]),
    );
    count.textContent = `${shown.length} of ${rows.length} slides`;
    more.hidden = shown.length <= limit;
  }

  search.addEventListener("input", () => {
    text = search.value;
    limit = PAGE;
    render();
  });
  more.addEventListener("click", () => {
    limit += PAGE;
    render();
  });
  render();
  const region = { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table of slides" };
  return h(
    "div",
    {},
    h("h2", {}, "Slides"),
    h("div", { class: "controls", role: "group", "aria-label": "Presets" }, ...buttons, search),
    h(
      "div",
      region,
      h("table", { id: "slides-table" }, h("thead", {}, h("tr", {}, ...heads)), body),
    ),
    h("div", { class: "table-foot" }, count, more),
  );
}

const NO_SLIDE = "No slide is like this. Choose another preset, or clear the filter.";

function rowOf(row: Row, columns: Column[], open: (number: number) => void): HTMLElement {
  const link = h("a", { href: `#screen=slide&slide=${encodeURIComponent(row.id)}` }, row.id);
  const element = h(
    "tr",
    { class: "openable", "data-index": row.index },
    h("th", { scope: "row" }, link),
    ...columns
      .slice(1)
      .map((column) => h("td", { class: column.numeric ? "number" : null }, column.text(row))),
  );
  element.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open(row.index);
  });
  return element;
}
