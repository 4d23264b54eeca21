import { expect, test } from "vitest";
import { fixed, percent, tiles } from "../../src/page/format";

test("numbers for people", () => {
  expect(fixed(-0.0001, 2)).toBe("0.00");
  expect(fixed(-0.25, 2)).toBe("−0.25");
  expect(fixed(null)).toBe("–");
  expect(tiles(3.25)).toBe("3.3");
  expect(tiles(4)).toBe("4");
  expect(tiles(153.6)).toBe("154");
  expect(percent(0.256)).toBe("26%");
});
