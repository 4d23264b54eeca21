import { expect, test } from "vitest";
import { linearTicks, markerIndices, powersOfTwo, scaleTicks } from "../../src/charts/ticks";

test("ticks are round and inside", () => {
  expect(powersOfTwo(256)).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256]);
  expect(linearTicks(1, 256, 400)).toEqual([1, 100, 200]);
  expect(linearTicks(0, 256, 800)).toEqual([0, 50, 100, 150, 200, 250]);
  expect(scaleTicks(-0.3, 1, 5)).toEqual([0, 0.5, 1]);
  expect(scaleTicks(0, 1, 5)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
});

test("markers stay apart", () => {
  const x = Array.from({ length: 256 }, (_, i) => i + 1);
  expect(markerIndices(x, true).map((i) => x[i])).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256]);
  expect(markerIndices(x, false)).toHaveLength(9);
  expect(markerIndices([1, 2, 4], true)).toEqual([0, 1, 2]);
});
