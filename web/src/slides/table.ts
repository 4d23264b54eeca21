/** Table of slides: click a heading to sort, a row to open its slide. */

import { checkbox, h } from "../page/dom";
import type { AuditPayload, View } from "../page/payload";
import { type Column, columnsOf, isFurther } from "./columns";
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
import { emptyRow, groupRow, headCell, slideRow } from "./tableRows";

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
  const every = columnsOf(payload);
  let columns = every.filter((column) => !isFurther(column));
  let rows = rowsOf(payload, first);
  let order: Order = { by: "hardest" };
  let filter: Filter = { ...NO_FILTER };
  let shown: Row[] = [];
  let limit = PAGE;
  let opened: number | null = null;

  const head = h("thead");
  const body = h("tbody");
  const count = h("p", { class: "count", role: "status" });
  const more = h("button", { type: "button" });
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

  function drawHead(): void {
    const cells = columns.map((column) => headCell(column, () => sortBy(column)));
    head.replaceChildren(groupRow(columns), h("tr", {}, ...cells));
  }

  function render(): void {
    const kept = filterRows(rows, filter, headline);
    shown =
      order.by === "column"
        ? sortRows(kept, order.column, order.direction)
        : sortByHardness(kept, headline, order.by === "hardest");
    const sorted = order.by === "column" ? order : null;
    for (const cell of head.querySelectorAll<HTMLElement>("[data-key]")) {
      const own = sorted?.column.key === cell.dataset.key;
      cell.setAttribute("aria-sort", own ? sorted!.direction : "none");
    }
    for (const button of presets) {
      button.setAttribute("aria-pressed", String(button.id === `order-${order.by}`));
    }
    const lines = shown.slice(0, limit).map((row) => slideRow(row, columns, open));
    body.replaceChildren(...(lines.length ? lines : [emptyRow(columns.length)]));
    count.textContent = shown.length
      ? `${shown.length} of ${rows.length} slides`
      : `None of the ${rows.length} slides fits these filters`;
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
  const areas = checkbox("also AUKC and Faithfulness", false, (on) => {
    columns = every.filter((column) => on || !isFurther(column));
    drawHead();
    render();
  });
  controls.append(areas);
  const table = h("table", { id: "slides-table" }, head, body);
  const region = { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table of slides" };
  drawHead();
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
