/** What is proven of the smallest deciding set of a slide. */

import { NOTHING, tiles } from "../page/format";
import type { AuditPayload } from "../page/payload";

export const NO_SET = "Proven: no set of tiles decides this slide";

/** Whether anything is proven of any slide. */
export function isProven({ slides }: AuditPayload): boolean {
  return slides.proof.some((proof) => proof !== null && proof !== "no bound");
}

/** The proven minimum in a cell: a count, a lower bound, or none. */
export function minimumCell(least: number | null, proof: string | null): string {
  if (least === null) return proof === "none, proven" ? proof : NOTHING;
  return proof === "exact" ? String(least) : `≥ ${least}`;
}

/** "deciding tiles, one-tile test: 10 tiles, proven minimum 9"; null where nothing is measured and nothing proven. */
export function decidingText(
  { slides }: AuditPayload,
  index: number,
  rankings: (string | null)[],
  called: Record<string, string>,
): string | null {
  const proof = slides.proof[index];
  if (proof === "none, proven") return NO_SET;
  const counts = [...new Set(rankings)].flatMap((name) => {
    const own = name === null ? undefined : slides.measures[name];
    if (own === undefined || own.found[index] === null) return [];
    const count = own.decisive[index];
    const said = count === null ? "none" : `${tiles(count)} tile${count === 1 ? "" : "s"}`;
    return [`${called[name!]}: ${said}`];
  });
  if (!counts.length) return null;
  const least = slides.k_star[index];
  const minimum = proof === "exact" ? "proven minimum" : "proven to be at least";
  return `deciding tiles, ${counts.join(", ")}${least === null ? "" : `, ${minimum} ${least}`}`;
}
