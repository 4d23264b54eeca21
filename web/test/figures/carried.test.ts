import { expect, test } from "vitest";
import { carriedSlides, cumulative } from "../../src/figures/slideCounts";
import type { AuditPayload } from "../../src/page/payload";

test("a slide counts from its own count on, by the share of its seeds", () => {
  const counts = [
    { count: 2, weight: 1 },
    { count: 4, weight: 0.5 },
    { count: null, weight: 0 },
    { count: 4, weight: 1 },
  ];
  expect(cumulative(counts, [1, 2, 3, 4])).toEqual([0, 0.25, 0.25, 0.625]);
});

test("undecided slides, single tiles and slides that were not deleted are left out", () => {
  const own = { found: [1, 1, 1, null] };
  const payload = {
    kappa: 0.9,
    slides: {
      id: ["a", "b", "c", "d"],
      n: [9, 9, 1, 9],
      p: [0.95, 0.5, 0.99, 0.99],
      measures: { prediction: { native: own } },
    },
  } as unknown as AuditPayload;
  expect(carriedSlides(payload, ["native"])).toEqual([0]);
});
