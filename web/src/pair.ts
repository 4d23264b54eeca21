/** Which two rankings of a slide are compared first. */

import type { Link } from "./link";

/** As linked, else the model's own beside the headline. */
export function startingPair(
  columns: string[],
  headline: string,
  link: Pick<Link, "left" | "right">,
): [string, string] {
  const known = (name: string | null) => (name !== null && columns.includes(name) ? name : null);
  const left = known(link.left) ?? known("native") ?? columns[0];
  const beside = headline === left ? null : known(headline);
  const right = known(link.right) ?? beside ?? columns.find((c) => c !== left) ?? left;
  return [left, right];
}
