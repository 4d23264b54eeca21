/** Columns of a table of slides: heading, the value to sort by, the text to show. */

import { h } from "../page/dom";
import { fixed, NOTHING } from "../page/format";
import type { AuditPayload } from "../page/payload";
import { isProven, minimumCell } from "./minimum";
import type { Row } from "./rows";

export interface Column {
  key: string;
  title: string;
  hint: string;
  numeric: boolean;
  value: (row: Row) => string | number | null;
  text: (row: Row) => string;
}

/** What a slide is, whatever ranks its tiles: names, classes, probability, tiles. */
export function ofTheSlide(payload: AuditPayload): Column[] {
  const labelled = payload.slides.label.some((label) => label !== null);
  return [
    name("id", "Slide", "Name of the slide", (row) => row.id),
    name("case", "Patient", "Name of the patient", (row) => row.case),
    ...(labelled ? [name("label", "Label", "Class that is true", (row) => row.label)] : []),
    {
      ...name("predicted", "Predicted", "Class the model says of all tiles", (r) => r.predicted),
      text: (row) => (row.wrong ? `${row.predicted} ✗` : row.predicted),
    },
    number("p", "p", "Probability of the predicted class with all tiles", (row) => row.p),
    { ...number("n", "N", "Candidate tiles", (row) => row.n), text: (row) => String(row.n) },
  ];
}

function name(
  key: string,
  title: string,
  hint: string,
  value: (row: Row) => string | null,
): Column {
  return { key, title, hint, numeric: false, value, text: (r) => value(r) ?? NOTHING };
}

function number(
  key: string,
  title: string,
  hint: string,
  value: (row: Row) => number | null,
): Column {
  return { key, title, hint, numeric: true, value, text: (r) => fixed(value(r)) };
}

/** The proven minimum, where anything is proven of any slide. */
export function minimum(payload: AuditPayload): Column[] {
  if (!isProven(payload)) return [];
  const hint = "Fewest tiles of any set that decides the slide, proven; ≥: a lower bound";
  return [
    {
      ...number("least", "Proven minimum", hint, (row) => row.least),
      text: (row) => minimumCell(row.least, row.proof),
    },
  ];
}

export function headCell(column: Column, sort: () => void): HTMLTableCellElement {
  const button = h("button", { type: "button", title: `${column.hint}. Click to sort.` });
  button.textContent = column.title;
  button.addEventListener("click", sort);
  const className = column.numeric ? "number" : null;
  return h("th", { scope: "col", "data-key": column.key, class: className }, button);
}
