/** What the screens share: the cohort, the open slide, and what is on the screen. */

import { startingPair } from "../page/link";
import type { OpenSlide } from "./openSlide";
import type { State } from "./state";
import type { ViewerCohort } from "./types.generated";

export interface Session {
  cohort: ViewerCohort;
  state: State;
  /** Go to another screen, slide or pair of rankings. */
  go(part: Partial<State>): void;
  /** Keep in the link what has changed on this screen. */
  remember(part: Partial<State>): void;
  /** Slides in the order of the table, as the reader has sorted and filtered it. */
  listed: number[];
}

export interface ScreenView {
  element: HTMLElement;
  /** Handle a key; true if it was one of the screen's. */
  key?(event: KeyboardEvent): boolean;
  close?(): void;
}

/** The two rankings on the screen. */
export function pairOf({ cohort, state }: Session, slide: OpenSlide): [string, string] {
  const best = cohort.audit.rankings.find((r) => r.name === cohort.best)?.columns[0];
  return startingPair(slide.data.columns, cohort.native, best ?? cohort.audit.headline, state);
}

/** Index of the count that a slide opens with: as linked, else MSK of one of the rankings. */
export function startIndex(
  { state }: Session,
  slide: OpenSlide,
  pair: [string, string],
  least = 1,
): number {
  const { ks, msk } = slide.data;
  const wanted = state.k ?? Math.max(msk[pair[1]] ?? msk[pair[0]] ?? 8, least);
  return Math.max(
    ks.findLastIndex((k) => k <= wanted),
    0,
  );
}
