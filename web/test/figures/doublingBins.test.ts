import { expect, test } from "vitest";
import { binName, binTick, doublingBins } from "../../src/figures/doublingBins";

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
