/** Data that the figures of one view share. */

import { type Ink, inkOf } from "../charts/ink";
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
    ink: (name) => inkOf(name, rankings),
  };
}

/** The target class of a view, in words. */
export const ofTarget = (view: View) =>
  view === "prediction" ? "the predicted class" : "the label";
