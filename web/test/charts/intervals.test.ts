import { expect, test } from "vitest";
import { commonScale } from "../../src/charts/intervals";

test("zero is always on the scale of the intervals", () => {
  const scale = commonScale([{ estimate: 5, low: 4, high: 10 }], [0.5], 100, 10);
  expect(scale.at(0)).toBe(10);
  expect(scale.at(10)).toBe(90);
  expect(scale.at(5)).toBe(50);
  expect(commonScale([{ estimate: -4, low: -8, high: 0 }], [], 100, 10).at(-8)).toBe(10);
});
