/** Table of slides: click a heading to sort, a row to open its slide. */

import { h } from "../page/dom";
import type { AuditPayload, View } from "../page/payload";
import { type Column, columnsOf } from "./columns";
import { filterControls } from "./filters";
import {
  type Direction,
  type Filter,
  filterRows,
  NO_FILTER,
  type Row,
  rowsOf,
  sortByHardness,
  sortRows,
} from "./rows";
import { groupRow, headCell, slideRow } from "./tableRows";

type Order = { by: "hardest" | "compact" } | { by: "column"; column: Column; direction: Direction };

const PAGE = 100;

export interface SlideTable {
  element: HTMLElement;
  setView(view: View): void;
  /** Slides that can be opened, in the present order and filter. */
  openable(): Row[];
  markOpen(index: number | null): void;
}

export function slideTable(
  payload: AuditPayload,
  first: View,
  open: (row: Row) => void,
): SlideTable {
  const headline = payload.rankings.findIndex((r) => r.name === payload.headline);
  const columns = columnsOf(payload);
  let rows = rowsOf(payload, first);
  let order: Order = { by: "hardest" };
  let filter: Filter = { ...NO_FILTER };
  let shown: Row[] = [];
  let limit = PAGE;
  let opened: number | null = null;

  const body = h("tbody");
  const count = h("p", { class: "count", role: "status" });
  const more = h("button", { type: "button" });
  const heads = columns.map((column) => headCell(column, () => sortBy(column)));
  const presets = [
    preset("hardest", "Hardest first", () => reorder({ by: "hardest" })),
    preset("compact", "Most compact first", () => reorder({ by: "compact" })),
  ];

  function sortBy(column: Column): void {
    const again =
      order.by === "column" && order.column === column && order.direction === "ascending";
    reorder({ by: "column", column, direction: again ? "descending" : "ascending" });
  }

  function reorder(next: Order): void {
    order = next;
    limit = PAGE;
    render();
  }

  function render(): void {
    const kept = filterRows(rows, filter, headline);
    shown =
      order.by === "column"
        ? sortRows(kept, order.column, order.direction)
        : sortByHardness(kept, headline, order.by === "hardest");
    const sorted = order.by === "column" ? order : null;
    for (const [i, column] of columns.entries()) {
      heads[i].setAttribute("aria-sort", sorted?.column === column ? sorted.direction : "none");
    }
    for (const button of presets) {
      button.setAttribute("aria-pressed", String(button.id === `order-${order.by}`));
    }
    body.replaceChildren(...shown.slice(0, limit).map((row) => slideRow(row, columns, open)));
    count.textContent = `${shown.length} of ${rows.length} slides`;
    more.hidden = shown.length <= limit;
    more.textContent = `Show ${Math.min(PAGE, shown.length - limit)} more`;
    markOpen();
  }

  function markOpen(): void {
    for (const row of body.rows) {
      if (Number(row.dataset.index) === opened) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    }
  }

  more.addEventListener("click", () => {
    limit += PAGE;
    render();
  });
  const controls = filterControls(payload, presets, (next) => {
    filter = { ...filter, ...next };
    limit = PAGE;
    render();
  });
  const head = h("thead", {}, groupRow(columns), h("tr", {}, ...heads));
  const table = h("table", { id: "slides-table" }, head, body);
  const region = { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table of slides" };
  render();
  return {
    element: h(
      "div",
      { class: "slide-table" },
      controls,
      h("div", region, table),
      h("div", { class: "table-foot" }, count, more),
    ),
    setView(view) {
      rows = rowsOf(payload, view);
      render();
    },
    openable: () => shown.filter((row) => row.detailed),
    markOpen(index) {
      opened = index;
      markOpen();
    },
  };
}

function preset(name: string, label: string, click: () => void): HTMLButtonElement {
  const button = h("button", { type: "button", id: `order-${name}` }, label);
  button.addEventListener("click", click);
  return button;
}
