import { expect, test } from "vitest";
import { fixed, interval, percent, tiles } from "../src/format";
import { commonScale } from "../src/intervals";
import { formatLink, parseLink } from "../src/link";
import { startingPair } from "../src/pair";
import type { ComparedAudit } from "../src/payload";
import { pointsOf } from "../src/points";
import { linearTicks, markerIndices, powersOfTwo, scaleTicks } from "../src/ticks";
import { rankColour, viridis } from "../src/viridis";

test("links carry any name through and back", () => {
  for (const slide of ["a b", "<script>&k=9</script>", 'x"#%', "ä/ö"]) {
    const link = { slide, k: 12, left: "native", right: "selector-0" };
    expect(parseLink(formatLink(link))).toEqual(link);
  }
  const nothing = { slide: null, k: null, left: null, right: null };
  expect(parseLink("")).toEqual(nothing);
  expect(parseLink("#verdict")).toEqual(nothing);
  expect(parseLink("#slide=a&k=-3").k).toBeNull();
  expect(parseLink("#slide=a&k=no").k).toBeNull();
});

test("two rankings stand beside each other, whatever was run", () => {
  const none = { left: null, right: null };
  const columns = ["native", "selector-0", "selector-1"];
  expect(startingPair(columns, "selector-0", none)).toEqual(["native", "selector-0"]);
  expect(startingPair(columns, "native", none)).toEqual(["native", "selector-0"]);
  expect(startingPair(columns, "selector-0", { left: "selector-1", right: "gone" })).toEqual([
    "selector-1",
    "selector-0",
  ]);
  expect(startingPair(["native"], "native", none)).toEqual(["native", "native"]);
});

test("numbers for people", () => {
  expect(fixed(-0.0001, 2)).toBe("0.00");
  expect(fixed(-0.25, 2)).toBe("−0.25");
  expect(fixed(null)).toBe("–");
  expect(tiles(3.25)).toBe("3.3");
  expect(tiles(4)).toBe("4");
  expect(tiles(153.6)).toBe("154");
  expect(percent(0.256)).toBe("26%");
  expect(interval({ estimate: 2, low: -1, high: 3.5 })).toBe("2.0 (−1.0 to 3.5)");
  expect(interval({ estimate: null, low: null, high: null })).toBe("–");
});

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

test("zero is always on the scale of the intervals", () => {
  const scale = commonScale([{ estimate: 5, low: 4, high: 10 }], [0.5], 100, 10);
  expect(scale.at(0)).toBe(10);
  expect(scale.at(10)).toBe(90);
  expect(scale.at(5)).toBe(50);
  expect(commonScale([{ estimate: -4, low: -8, high: 0 }], [], 100, 10).at(-8)).toBe(10);
});

test("lightness rises along the colours, so that grey tells ranks apart", () => {
  const light = ([r, g, b]: number[]) => 0.2126 * r + 0.7152 * g + 0.0722 * b;
  const steps = Array.from({ length: 101 }, (_, i) => light(viridis(i / 100)));
  for (let i = 1; i < steps.length; i++) expect(steps[i]).toBeGreaterThanOrEqual(steps[i - 1]);
  expect(rankColour(1, 256, false)).toBe("rgb(68,1,84)");
  expect(rankColour(1, 256, true)).toBe("rgb(253,231,37)");
  expect(rankColour(1, 1, false)).toBe("rgb(68,1,84)");
});

test("audits without an AUC or SHI are no points", () => {
  const shi = { estimate: 0.5, low: 0.4, high: 0.6 };
  const audit = (auc: number | null, shi_native: typeof shi | null) =>
    ({ name: "a", auc, shi_native, shi_random: null }) as unknown as ComparedAudit;
  const points = pointsOf([audit(0.9, shi), audit(null, shi), audit(0.8, null)], "shi_native");
  expect(points.map((p) => [p.number, p.x, p.y.estimate])).toEqual([[1, 0.9, 0.5]]);
  expect(pointsOf([audit(0.9, shi)], "shi_random")).toEqual([]);
});
