import { expect, test } from "vitest";
import { onAxis, unionOfCounts, valueAt } from "../../src/charts/align";

test("curves of different counts meet on one axis", () => {
  const axis = unionOfCounts([
    [1, 2, 8],
    [1, 4],
  ]);
  expect(axis).toEqual([1, 2, 4, 8]);
  expect(onAxis(axis, [1, 4], [0.5, null])).toEqual([0.5, null, null, null]);
});

test("between counts a curve is straight, beyond them flat", () => {
  expect(valueAt([1, 3, 5], [0, 1, 0.5], 2)).toBe(0.5);
  expect(valueAt([1, 3, 5], [0, 1, 0.5], 3)).toBe(1);
  expect(valueAt([1, 3, 5], [0, 1, 0.5], 0.5)).toBe(0);
  expect(valueAt([1, 3, 5], [0, 1, 0.5], 99)).toBe(0.5);
  expect(valueAt([1, 3], [null, 1], 2)).toBeNull();
});
