/** Build and sort the rows of a table of slides. */

import type { AuditPayload } from "../page/payload";
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
  /** Proven minimum of deciding tiles, or a lower bound, and which of them it is. */
  least: number | null;
  proof: string | null;
}

export type Direction = "ascending" | "descending";

/** The slides, in the order of the audit. */
export function rowsOf({ slides, classes }: AuditPayload): Row[] {
  return slides.id.map((id, index) => {
    const label = slides.label[index];
    return {
      index,
      id,
      case: slides.case[index],
      label: label === null ? null : classes[label],
      predicted: classes[slides.predicted[index]],
      p: slides.p[index],
      n: slides.n[index],
      wrong: label !== null && label !== slides.predicted[index],
      least: slides.k_star[index],
      proof: slides.proof[index],
    };
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

const collator = new Intl.Collator("en", { numeric: true });
const compareNames = (a: string, b: string) => collator.compare(a, b);
