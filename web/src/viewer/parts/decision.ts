/** What the model says of a slide with and without the first tiles of a ranking, in words. */

import { fixed } from "../../page/format";
import { flipAt, type OpenSlide } from "../openSlide";
import type { ViewerCohort } from "../types.generated";

export type Seen = "all" | "only" | "without";

/** Class and probability from all tiles, only the first K, or all but these. */
export function decisionText(
  { audit }: ViewerCohort,
  slide: OpenSlide,
  column: string,
  k: number,
  seen: Seen,
): string {
  if (seen === "all") return `${slide.predicted}, p = ${fixed(slide.data.full)}`;
  const curve = (seen === "only" ? slide.keeps : slide.deletions)[column];
  const at = curve ? curve.ks.findLastIndex((one) => one <= k) : -1;
  if (at < 0) return "not measured";
  const measured = curve.ks[at] === k ? "" : ` (measured at K = ${curve.ks[at]})`;
  const other = curve.says[at] === slide.target ? "" : ": the decision flips";
  return `${audit.classes[curve.says[at]]}, p = ${fixed(curve.sure[at])}${other}${measured}`;
}

/** Where the decision flips, or that it survives. */
export function flipText(slide: OpenSlide, column: string): string {
  const flip = flipAt(slide, column);
  if (flip !== null) return `decision flips without the first ${flip}`;
  const tried = slide.deletions[column]?.ks.at(-1);
  return tried ? `decision survives without the first ${tried}` : "";
}
