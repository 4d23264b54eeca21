import { expect, test } from "vitest";
import { pointsOf } from "../../src/figures/points";
import type { ComparedAudit } from "../../src/page/payload";

test("audits without an AUC or SHI are no points", () => {
  const shi = { estimate: 0.5, low: 0.4, high: 0.6 };
  const audit = (auc: number | null, shi_native: typeof shi | null) =>
    ({ name: "a", auc, shi_native, shi_random: null }) as unknown as ComparedAudit;
  const points = pointsOf([audit(0.9, shi), audit(null, shi), audit(0.8, null)], "shi_native");
  expect(points.map((p) => [p.x, p.y.estimate])).toEqual([[0.9, 0.5]]);
  expect(pointsOf([audit(0.9, shi)], "shi_random")).toEqual([]);
});
