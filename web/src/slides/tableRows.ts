/** Rows and headings of the table of slides as HTML elements. */

import { h } from "../page/dom";
import { formatLink } from "../page/link";
import type { Column } from "./columns";
import type { Row } from "./rows";

/** Row of one slide; a click or Enter opens it, if its curves are in the file. */
export function slideRow(row: Row, columns: Column[], open: (row: Row) => void): HTMLElement {
  const [, ...others] = columns;
  const element = h(
    "tr",
    { "data-index": row.index, class: row.detailed ? "openable" : null },
    h("th", { scope: "row" }, row.detailed ? link(row) : row.id),
    ...others.map((column, i) => h("td", { class: look(column, columns[i]) }, column.text(row))),
  );
  if (!row.detailed) {
    element.title = "The curves of this slide are not in this file";
    return element;
  }
  element.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open(row);
  });
  return element;
}

/** What the table says where no slide is left. */
export function emptyRow(columns: number): HTMLTableRowElement {
  const say = "No slide fits these filters. Take one away to see slides again.";
  return h("tr", { class: "empty" }, h("td", { colspan: columns }, say));
}

function link(row: Row): HTMLElement {
  return h("a", { href: formatLink({ slide: row.id, k: null, left: null, right: null }) }, row.id);
}

function look(column: Column, before: Column): string | null {
  const starts = column.group !== before.group;
  return [column.numeric && "number", starts && "group-start"].filter(Boolean).join(" ") || null;
}

export function headCell(column: Column, sort: () => void): HTMLTableCellElement {
  const button = h("button", { type: "button", title: `${column.hint}. Click to sort.` });
  button.textContent = column.title;
  button.addEventListener("click", sort);
  const className = column.numeric ? "number" : null;
  return h("th", { scope: "col", "data-key": column.key, class: className }, button);
}

/** Row of group headings above the headings of the columns. */
export function groupRow(columns: Column[]): HTMLTableRowElement {
  const row = h("tr", { class: "groups" });
  for (const [i, { group }] of columns.entries()) {
    if (i > 0 && group === columns[i - 1].group) continue;
    const beyond = columns.findIndex((c, j) => j > i && c.group !== group);
    const colspan = (beyond < 0 ? columns.length : beyond) - i;
    row.append(
      group === null ? h("td", { colspan }) : h("th", { colspan, scope: "colgroup" }, group),
    );
  }
  return row;
}
