import { expect, test } from "vitest";
import { afterKey, nearestInLog } from "../../src/charts/logSlider";

const KS = Array.from({ length: 256 }, (_, i) => i + 1);
const press = (at: number, key: string, shiftKey = false) => afterKey(KS, at, { key, shiftKey });

test("a position goes to the count that is nearest on a log scale", () => {
  expect(nearestInLog(KS, 1.4)).toBe(0);
  expect(nearestInLog(KS, 1.5)).toBe(1);
  expect(nearestInLog(KS, 11.4)).toBe(10);
  expect(nearestInLog([1, 2, 4, 64], 12)).toBe(2);
  expect(nearestInLog([1, 2, 4, 64], 9999)).toBe(3);
});

test("keys step, double, halve and jump", () => {
  expect(press(4, "ArrowRight")).toBe(5);
  expect(press(4, "ArrowDown")).toBe(3);
  expect(press(4, "ArrowRight", true)).toBe(9);
  expect(press(9, "ArrowLeft", true)).toBe(4);
  expect(press(9, "PageUp")).toBe(19);
  expect(press(0, "PageDown")).toBe(0);
  expect(press(200, "PageUp")).toBe(255);
  expect(press(7, "Home")).toBe(0);
  expect(press(7, "End")).toBe(255);
  expect(press(255, "ArrowUp")).toBe(255);
  expect(press(7, "Tab")).toBeNull();
});
