/** Columns of the table of slides: the value to sort by and the text to show. */

import { fixed, NOTHING, tiles } from "../page/format";
import type { AuditPayload } from "../page/payload";
import { isProven, minimumCell } from "./minimum";
import type { Row } from "./rows";

export interface Column {
  key: string;
  /** Heading above the columns of one metric, one column per ranking. */
  group: string | null;
  title: string;
  hint: string;
  numeric: boolean;
  value: (row: Row) => string | number | null;
  text: (row: Row) => string;
}

export function columnsOf(payload: AuditPayload): Column[] {
  return [
    ...ofTheSlide(payload),
    ...needed(payload),
    ...decisive(payload),
    ...minimum(payload),
    ...perRanking(payload, "aukc", "AUKC", "Area under the reveal curve"),
    ...perRanking(payload, "faithfulness", "Faithfulness", "Faithfulness AUC of deletion"),
  ];
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

/** Columns that are folded away until the reader asks for them. */
export function isFurther({ key }: Column): boolean {
  return key.startsWith("aukc:") || key.startsWith("faithfulness:");
}

function name(
  key: string,
  title: string,
  hint: string,
  value: (row: Row) => string | null,
): Column {
  return { key, group: null, title, hint, numeric: false, value, text: (r) => value(r) ?? NOTHING };
}

function number(
  key: string,
  title: string,
  hint: string,
  value: (row: Row) => number | null,
): Column {
  return { key, group: null, title, hint, numeric: true, value, text: (r) => fixed(value(r)) };
}

/** Tiles needed: "> k_max" if no seed reaches κ, a star if some seeds do not. */
function needed(payload: AuditPayload): Column[] {
  const hint = `Tiles needed, mean over seeds; a seed that never reaches counts as ${payload.k_max}`;
  const columns = perRanking(payload, "k", "Tiles needed, K", hint);
  const text = (row: Row, i: number) => {
    if (row.reach[i] === 0) return `> ${payload.k_max}`;
    return row.reach[i] < 1 ? `${tiles(row.k[i])} *` : tiles(row.k[i]);
  };
  return columns.map((column, i) => ({ ...column, text: (row) => text(row, i) }));
}

/** Decisive K: "none" if no seed has one, a star if some seeds do not; nothing if not measured. */
function decisive(payload: AuditPayload): Column[] {
  const measures = payload.slides.measures.prediction!;
  const measured = payload.rankings.map((r) => measures[r.name].found.some((v) => v !== null));
  const hint = "The first K tiles suffice, and without them the decision flips; mean over seeds";
  const columns = perRanking(payload, "decisive", "Decisive K", hint);
  const text = (row: Row, i: number) => {
    if (row.found[i] === null) return NOTHING;
    if (row.decisive[i] === null) return "none";
    return row.found[i]! < 1 ? `${tiles(row.decisive[i])} *` : tiles(row.decisive[i]);
  };
  return columns
    .map((c, i) => ({ ...c, text: (row: Row) => text(row, i) }))
    .filter((_, i) => measured[i]);
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

function perRanking(
  payload: AuditPayload,
  key: "k" | "decisive" | "aukc" | "faithfulness",
  group: string,
  hint: string,
): Column[] {
  return payload.rankings.map((ranking, i) => ({
    ...number(`${key}:${ranking.name}`, ranking.name, `${hint}: ${ranking.name}`, (r) => r[key][i]),
    group,
  }));
}
