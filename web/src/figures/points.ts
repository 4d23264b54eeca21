/** Audits as points: discrimination against headroom. */

import type { ComparedAudit, Interval } from "../page/payload";

export interface Point {
  number: number;
  x: number;
  y: Interval & { estimate: number };
  audit: ComparedAudit;
}

/** Audits that have both numbers; the others are left out and counted. */
export function pointsOf(audits: ComparedAudit[], which: "shi_native" | "shi_random"): Point[] {
  return audits.flatMap((audit, i) => {
    const y = audit[which];
    return audit.auc === null || y === null || y.estimate === null
      ? []
      : [{ number: i + 1, x: audit.auc, y: { ...y, estimate: y.estimate }, audit }];
  });
}
