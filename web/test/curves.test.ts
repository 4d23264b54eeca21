import { expect, test } from "vitest";
import { heldOnAxis, onAxis, unionOfCounts, valueAt } from "../src/align";
import { binName, binTick, doublingBins } from "../src/distribution";

test("curves of different counts meet on one axis", () => {
  const axis = unionOfCounts([
    [1, 2, 8],
    [1, 4],
  ]);
  expect(axis).toEqual([1, 2, 4, 8]);
  expect(onAxis(axis, [1, 4], [0.5, null])).toEqual([0.5, null, null, null]);
  expect(heldOnAxis([0, 1, 2, 9], [0, 2], [1, 0.25])).toEqual([1, 1, 0.25, 0.25]);
});

test("between counts a curve is straight, beyond them flat", () => {
  expect(valueAt([1, 3, 5], [0, 1, 0.5], 2)).toBe(0.5);
  expect(valueAt([1, 3, 5], [0, 1, 0.5], 3)).toBe(1);
  expect(valueAt([1, 3, 5], [0, 1, 0.5], 0.5)).toBe(0);
  expect(valueAt([1, 3, 5], [0, 1, 0.5], 99)).toBe(0.5);
  expect(valueAt([1, 3], [null, 1], 2)).toBeNull();
});

test("doubling bins share out all slides", () => {
  // Of ten slides: 3 need one tile, 1 needs 2, 2 need 3, 1 needs 7, 1 needs 8, 2 never reach.
  const ks = [0, 1, 2, 3, 7, 8];
  const survival = [1, 0.7, 0.6, 0.4, 0.3, 0.2];
  const { bins, never } = doublingBins(ks, survival, 20);
  expect(bins.map(binName)).toEqual(["1", "2", "3 to 4", "5 to 8", "9 to 16", "17 to 20"]);
  expect(bins.map(binTick)).toEqual(["1", "2", "≤4", "≤8", "≤16", "≤20"]);
  const shares = [0.3, 0.1, 0.2, 0.2, 0, 0];
  for (const [i, bin] of bins.entries()) expect(bin.share).toBeCloseTo(shares[i]);
  expect(never).toBe(0.2);
});

test("one bin where the budget is one tile", () => {
  const { bins, never } = doublingBins([0, 1], [1, 0.25], 1);
  expect(bins).toEqual([{ from: 1, to: 1, share: 0.75 }]);
  expect(never).toBe(0.25);
});
