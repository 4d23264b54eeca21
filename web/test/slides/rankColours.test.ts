import { expect, test } from "vitest";
import { rankColour, viridis } from "../../src/slides/rankColours";

test("lightness rises along the colours, so that grey tells ranks apart", () => {
  const light = ([r, g, b]: number[]) => 0.2126 * r + 0.7152 * g + 0.0722 * b;
  const steps = Array.from({ length: 101 }, (_, i) => light(viridis(i / 100)));
  for (let i = 1; i < steps.length; i++) expect(steps[i]).toBeGreaterThanOrEqual(steps[i - 1]);
  expect(rankColour(1, 256, false)).toBe("rgb(68,1,84)");
  expect(rankColour(1, 256, true)).toBe("rgb(253,231,37)");
  expect(rankColour(1, 1, false)).toBe("rgb(68,1,84)");
});
