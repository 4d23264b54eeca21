import { expect, test, vi } from "vitest";

vi.stubGlobal("matchMedia", () => ({ matches: false, addEventListener: () => undefined }));
const { countsText } = await import("../../src/slides/side");

test("counts of a slide are said in words", () => {
  const data = {
    msk: { a: 7, b: 1, c: null, d: 7 },
    stable: { a: 23, b: 1, c: null, d: null },
    fallsBack: { a: 11, b: null, c: null, d: 11 },
  };
  expect(countsText(data, "a", 256)).toBe(
    "first sure at 7 tiles, falls back at 11, sure for good from 23 on",
  );
  expect(countsText(data, "b", 256)).toBe("sure from 1 tile on");
  expect(countsText(data, "c", 256)).toBe("never sure within 256 tiles");
  expect(countsText(data, "d", 256)).toBe(
    "first sure at 7 tiles, falls back at 11, not sure at 256",
  );
});
