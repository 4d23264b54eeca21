import { expect, test, vi } from "vitest";

vi.stubGlobal("matchMedia", () => ({ matches: false, addEventListener: () => undefined }));
const { apart } = await import("../../src/charts/annotations");

test("labels that would cover each other are moved apart evenly", () => {
  expect(apart([20, 100], 14)).toEqual([20, 100]);
  expect(apart([50, 54], 14)).toEqual([45, 59]);
  expect(apart([54, 50], 14)).toEqual([59, 45]);
  expect(apart([50, 50], 14)).toEqual([43, 57]);
});
