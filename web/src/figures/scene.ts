/** Data that the figures of one view share. */

import { type Ink, inkOf } from "../charts/ink";
import { percent } from "../page/format";
import type { AuditPayload, DrawnNumbers, View } from "../page/payload";

export interface Scene {
  payload: AuditPayload;
  view: View;
  rankings: string[];
  numbers: (ranking: string) => DrawnNumbers;
  ink: (ranking: string) => Ink;
}

export function sceneOf(payload: AuditPayload, view: View): Scene {
  const byRanking = payload.numbers[view]!;
  const rankings = payload.rankings.map((r) => r.name);
  return {
    payload,
    view,
    rankings,
    numbers: (name) => byRanking[name],
    ink: (name) => inkOf(name),
  };
}

/** The target class of a view, in words. */
export const ofTarget = (view: View) =>
  view === "prediction" ? "the predicted class" : "the label";

/** How many slides of how many patients a figure shows. */
export function cohortOf({ payload, view }: Scene): string {
  const labelled = payload.slides.label.filter((label) => label !== null).length;
  const slides = view === "label" ? labelled : payload.slides.id.length;
  const cases = new Set(
    payload.slides.case.filter((_, i) => view === "prediction" || payload.slides.label[i] !== null),
  ).size;
  return `n = ${slides} slides of ${cases} patient${cases === 1 ? "" : "s"}.`;
}

/** What the shaded bands are, where there are any: an interval needs two patients. */
export function shadedOf(
  { payload, rankings, numbers }: Scene,
  of: (own: DrawnNumbers) => { low: unknown[] },
): string {
  const shaded = rankings.some((name) => of(numbers(name)).low.some((end) => end !== null));
  return shaded ? `Shaded: ${percent(payload.level)} intervals over patients. ` : "";
}
