/** Build, sort and filter the rows of the table of slides. */

import type { AuditPayload, View } from "../page/payload";
import type { Column } from "./columns";

export interface Row {
  index: number;
  id: string;
  case: string;
  label: string | null;
  predicted: string;
  p: number;
  n: number;
  wrong: boolean;
  /** All tiles make the model at least κ sure. */
  decided: boolean;
  detailed: boolean;
  /** One entry per ranking, in the order of the payload. */
  k: number[];
  reach: number[];
  fallsBack: number[];
  decisive: (number | null)[];
  found: (number | null)[];
  /** Proven minimum of deciding tiles, or a lower bound, and which of them it is. */
  least: number | null;
  proof: string | null;
  aukc: number[];
  faithfulness: (number | null)[];
}

export type Direction = "ascending" | "descending";

export interface Filter {
  text: string;
  wrong: boolean;
  undecided: boolean;
  unreached: boolean;
  fallsBack: boolean;
  label: string | null;
}

export const NO_FILTER: Filter = {
  text: "",
  wrong: false,
  undecided: false,
  unreached: false,
  fallsBack: false,
  label: null,
};

/** The slides of a view, in the order of the audit; the label view leaves out unlabelled slides. */
export function rowsOf(payload: AuditPayload, view: View): Row[] {
  const { slides, classes, rankings } = payload;
  const measures = rankings.map((r) => slides.measures[view]![r.name]);
  return slides.id.flatMap((id, index) => {
    const label = slides.label[index];
    if (view === "label" && label === null) return [];
    return [
      {
        index,
        id,
        case: slides.case[index],
        label: label === null ? null : classes[label],
        predicted: classes[slides.predicted[index]],
        p: slides.p[index],
        n: slides.n[index],
        wrong: label !== null && label !== slides.predicted[index],
        detailed: String(index) in payload.details,
        // A slide of the view has these; only slides outside it have none.
        k: measures.map((m) => m.k[index]!),
        reach: measures.map((m) => m.reach[index]!),
        fallsBack: measures.map((m) => m.falls_back[index]!),
        decisive: measures.map((m) => m.decisive[index]),
        found: measures.map((m) => m.found[index]),
        least: slides.k_star[index],
        proof: slides.proof[index],
        decided: slides.p[index] >= payload.kappa,
        aukc: measures.map((m) => m.aukc[index]!),
        faithfulness: measures.map((m) => m.faithfulness[index]),
      },
    ];
  });
}

/** Sort by a column (stable); undefined values come last in both directions. */
export function sortRows(rows: Row[], column: Column, direction: Direction): Row[] {
  const sign = direction === "ascending" ? 1 : -1;
  return [...rows].sort((a, b) => {
    const [u, v] = [column.value(a), column.value(b)];
    if (u === null || v === null) return Number(u === null) - Number(v === null);
    if (typeof u === "string" || typeof v === "string")
      return sign * compareNames(String(u), String(v));
    return sign * (u - v);
  });
}

/** Sort by the tiles needed under one ranking, then by AUKC: hardest or most compact first. */
export function sortByHardness(rows: Row[], ranking: number, hardest: boolean): Row[] {
  const sign = hardest ? 1 : -1;
  return [...rows].sort(
    (a, b) =>
      sign * (b.k[ranking] - a.k[ranking] || a.aukc[ranking] - b.aukc[ranking]) ||
      a.index - b.index,
  );
}

export function filterRows(rows: Row[], filter: Filter, ranking: number): Row[] {
  const text = filter.text.trim().toLowerCase();
  return rows.filter(
    (row) =>
      (!text || row.id.toLowerCase().includes(text) || row.case.toLowerCase().includes(text)) &&
      (!filter.wrong || row.wrong) &&
      (!filter.undecided || !row.decided) &&
      (!filter.unreached || row.reach[ranking] === 0) &&
      (!filter.fallsBack || row.fallsBack[ranking] > 0) &&
      (filter.label === null || row.label === filter.label),
  );
}

const collator = new Intl.Collator("en", { numeric: true });
const compareNames = (a: string, b: string) => collator.compare(a, b);
