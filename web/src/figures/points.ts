/** Points of the scatter plot of AUC against headroom. */

import type { ComparedAudit, Interval } from "../page/payload";

export interface Point {
  x: number;
  y: Interval & { estimate: number };
  audit: ComparedAudit;
}

/** One point per audit that has both numbers; the caption counts the others. */
export function pointsOf(audits: ComparedAudit[], which: "shi_native" | "shi_random"): Point[] {
  return audits.flatMap((audit) => {
    const y = audit[which];
    return audit.auc === null || y === null || y.estimate === null
      ? []
      : [{ x: audit.auc, y: { ...y, estimate: y.estimate }, audit }];
  });
}
