import { expect, test, vi } from "vitest";

vi.stubGlobal("matchMedia", () => ({ matches: false, addEventListener: () => undefined }));
const { inkOf } = await import("../../src/charts/ink");

test("a ranking has its place in the palette, any other map one by its name", () => {
  expect(
    ["native", "evidence", "selector", "minimal", "random"].map((n) => inkOf(n).index),
  ).toEqual([0, 1, 2, 3, 4]);
  // words.colour_of("Grad-CAM") is the twelfth colour of the palette
  expect(inkOf("Grad-CAM").index).toBe(11);
});
