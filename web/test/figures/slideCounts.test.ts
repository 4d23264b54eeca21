import { expect, test } from "vitest";
import { drawnNote, drawnOf } from "../../src/figures/slideCounts";

test("few slides are all drawn", () => {
  const slides = Array.from({ length: 1500 }, (_, i) => i);
  expect(drawnOf(slides)).toEqual(slides);
  expect(drawnNote(1500)).toBe("");
});

test("of many slides 1500 are drawn, evenly chosen, none twice", () => {
  const drawn = drawnOf(Array.from({ length: 10000 }, (_, i) => i));
  expect(drawn.length).toBe(1500);
  expect(new Set(drawn).size).toBe(1500);
  const gaps = drawn.slice(1).map((slide, i) => slide - drawn[i]);
  expect([Math.min(...gaps), Math.max(...gaps)]).toEqual([6, 7]);
  expect([drawn[0], drawn[1499]]).toEqual([0, 9993]);
  expect(drawnNote(10000)).toBe(" 1500 of the 10000 slides are drawn, evenly chosen.");
});
