import { expect, test } from "vitest";
import { minimum, ofTheSlide } from "../../src/slides/columns";
import { decidingText, NO_SET } from "../../src/slides/minimum";
import type { AuditPayload, SlideMeasures } from "../../src/page/payload";
import { rowsOf, sortRows } from "../../src/slides/rows";

const native: SlideMeasures = {
  k: [256, 12, 3, 3],
  reach: [0, 1, 1, 1],
  decisive: [null, 30, 9, 9],
  found: [0, 1, 1, 1],
};
const selector: SlideMeasures = {
  k: [256, 87.5, 1, 2],
  reach: [0, 2 / 3, 1, 1],
  decisive: [null, 20, 4, 8],
  found: [0, 2 / 3, 1, 1],
};
const payload = {
  kind: "audit",
  classes: ["LUAD", "LUSC"],
  k_max: 256,
  kappa: 0.75,
  headline: "selector",
  rankings: [
    { name: "native", columns: ["native"] },
    { name: "selector", columns: ["selector-0"] },
  ],
  slides: {
    id: ["slide-10", "slide-9", "<b>", "Slide-2"],
    case: ["P1", "P1", "P2", "P3"],
    label: [0, 1, null, 1],
    predicted: [1, 1, 0, 1],
    p: [0.6, 0.9, 0.8, 0.7],
    n: [10, 500, 40, 300],
    k_star: [null, 18, 4, 5],
    proof: ["none, proven", "exact", "exact", "lower bound"],
    measures: { native, selector },
  },
  details: { "0": {}, "1": {}, "3": {} },
} as unknown as AuditPayload;

const rows = rowsOf(payload);
const columns = [...ofTheSlide(payload), ...minimum(payload)];
const column = (key: string) => columns.find((c) => c.key === key)!;
const ids = (list: { id: string }[]) => list.map((row) => row.id);

test("rows know what is wrong, labelled and stored", () => {
  expect(rows.map((row) => row.wrong)).toEqual([true, false, false, false]);
});

test("columns sort both ways, names by their numbers", () => {
  expect(ids(sortRows(rows, column("id"), "ascending"))).toEqual([
    "<b>",
    "Slide-2",
    "slide-9",
    "slide-10",
  ]);
  expect(ids(sortRows(rows, column("n"), "descending"))[0]).toBe("slide-9");
});

test("what is not defined comes last in both directions", () => {
  for (const direction of ["ascending", "descending"] as const) {
    expect(sortRows(rows, column("label"), direction)[3].id).toBe("<b>");
  }
});

test("every column has a text for every row", () => {
  for (const each of columns) {
    for (const row of rows) expect(each.text(row)).not.toMatch(/NaN|null|undefined/);
  }
  expect(column("predicted").text(rows[0])).toBe("LUSC ✗");
});

test("the proven minimum stands beside the deciding tiles", () => {
  const called = { native: "the map", selector: "trained" };
  expect(rows.map(column("least").text)).toEqual(["none, proven", "18", "4", "≥ 5"]);
  expect(decidingText(payload, 0, ["native"], called)).toBe(NO_SET);
  expect(decidingText(payload, 1, ["native", null], called)).toBe(
    "deciding tiles, the map: 30 tiles, proven minimum 18",
  );
  expect(decidingText(payload, 3, ["native", "selector"], called)).toBe(
    "deciding tiles, the map: 9 tiles, trained: 8 tiles, proven to be at least 5",
  );
  const unknown = { ...payload.slides, k_star: [null], proof: ["no bound"] };
  const other = { ...payload, slides: unknown } as AuditPayload;
  expect(minimum(other)).toEqual([]);
  expect(decidingText(other, 0, ["native"], called)).toBe("deciding tiles, the map: none");
});
