import { expect, test, vi } from "vitest";
import type { Carried } from "../../src/page/payload";

vi.stubGlobal("matchMedia", () => ({ matches: false, addEventListener: () => undefined }));
const { carriedCsv, drawnLines, stacked, valueAt } = await import("../../src/figures/carried");

const line = (share: number[]) => ({ share, low: share.map(() => null), high: share });
const chart: Carried = {
  ks: [1, 2, 40],
  n_slides: 4,
  n_cases: 3,
  relative: null,
  map: "Grad-CAM, fine",
  best: "evidence",
  typical: 2,
  lines: {
    "Grad-CAM, fine": line([0, 0.25, 0.5]),
    evidence: line([0.5, 0.75, 1]),
    random: line([0, 0, 0.1]),
  },
  minimum: [0.75, 1, 1],
};

test("lines are named in plain words and read at 32 tiles, the map on top", () => {
  expect(drawnLines(chart, "Grad-CAM, fine").map(({ name, says }) => `${name}: ${says}`)).toEqual([
    "random tiles: 0% at 32 tiles",
    "best order found: 75% at 32 tiles",
    "Grad-CAM, fine: 25% at 32 tiles",
  ]);
  const small = {
    ...chart,
    map: "native",
    best: null,
    ks: [1, 2, 3],
    lines: { native: line([0, 1, 1]) },
  };
  expect(drawnLines(small, "stand-in map").map(({ name, says }) => `${name}: ${says}`)).toEqual([
    "stand-in map: 100% at 3 tiles",
  ]);
});

test("a share holds until the next count and is 0 before the first", () => {
  expect([0, 1, 39, 40, 99].map((k) => valueAt(chart, [0.1, 0.2, 0.3], k))).toEqual([
    0, 0.1, 0.2, 0.3, 0.3,
  ]);
});

test("the data are the lines and the proven minimum, names with commas quoted", () => {
  const rows = carriedCsv(chart).trim().split("\n");
  expect(rows.length).toBe(1 + 3 * 4);
  expect(rows[0]).toBe("order,k,share,low,high,n_slides");
  expect(rows[2]).toBe('"Grad-CAM, fine",2,0.25,,0.25,4');
  expect(rows[12]).toBe("proven minimum,40,1,,,4");
});

test("labels keep their order, do not cover each other, and stay above the axis", () => {
  expect(stacked([10, 12, 200], [19, 36, 36], 300)).toEqual([10, 29, 200]);
  const [a, b, c] = stacked([299, 298, 300], [36, 36, 36], 300);
  expect([b, a, c]).toEqual([211, 247, 283]);
});
