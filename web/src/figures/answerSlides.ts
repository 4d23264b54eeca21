/** Small dot plot on the answer card: decisive K of every decided slide, under the order in use. */

import { stripPlot } from "../dots/stripPlot";
import type { AuditPayload } from "../page/payload";
import { sceneOf } from "./scene";
import { isDecided, laneOf } from "./slideCounts";

export function answerSlides(payload: AuditPayload, open: (index: number) => void): HTMLElement[] {
  if (payload.answers === null) return [];
  const scene = sceneOf(payload, "prediction");
  const { ranking, count: median, count_low: low, count_high: high } = payload.answers;
  const lane = laneOf(scene, ranking, "decisive", (index) => isDecided(payload, index));
  if (lane === null) return [];
  return [
    stripPlot({
      lanes: [{ ...lane, quartiles: median === null ? null : { low, median, high } }],
      kMax: payload.k_max,
      xLabel: "decisive K (tiles)",
      lane: "none",
      description: `Decisive K of the decided slides under ${ranking}: ${lane.note}`,
      laneHeight: 74,
      small: true,
      open,
    }),
  ];
}
