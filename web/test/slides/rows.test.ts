import { expect, test } from "vitest";
import { columnsOf } from "../../src/slides/columns";
import { decidingText, NO_SET } from "../../src/slides/minimum";
import type { AuditPayload, SlideMeasures } from "../../src/page/payload";
import { filterRows, NO_FILTER, rowsOf, sortByHardness, sortRows } from "../../src/slides/rows";

const native: SlideMeasures = {
  k: [256, 12, 3, 3],
  reach: [0, 1, 1, 1],
  falls_back: [0, 0, 0, 1],
  decisive: [null, 30, 9, 9],
  found: [0, 1, 1, 1],
  aukc: [0.5, 0.8, 0.9, 0.7],
  faithfulness: [null, 0.2, 0.1, 0.3],
};
const selector: SlideMeasures = {
  k: [256, 87.5, 1, 2],
  reach: [0, 2 / 3, 1, 1],
  falls_back: [0, 1 / 3, 0, 0],
  decisive: [null, 20, 4, 8],
  found: [0, 2 / 3, 1, 1],
  aukc: [0.4, 0.6, 0.95, 0.9],
  faithfulness: [null, 0.5, 0.2, 0.1],
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
    measures: { prediction: { native, selector }, label: { native, selector } },
  },
  details: { "0": {}, "1": {}, "3": {} },
} as unknown as AuditPayload;

const rows = rowsOf(payload, "prediction");
const column = (key: string) => columnsOf(payload).find((c) => c.key === key)!;
const ids = (list: { id: string }[]) => list.map((row) => row.id);

test("rows know what is wrong, labelled and stored", () => {
  expect(rows.map((row) => row.wrong)).toEqual([true, false, false, false]);
  expect(rows.map((row) => row.detailed)).toEqual([true, true, false, true]);
  expect(rows[0].k).toEqual([256, 256]);
  expect(ids(rowsOf(payload, "label"))).toEqual(["slide-10", "slide-9", "Slide-2"]);
});

test("columns sort both ways, names by their numbers", () => {
  expect(ids(sortRows(rows, column("id"), "ascending"))).toEqual([
    "<b>",
    "Slide-2",
    "slide-9",
    "slide-10",
  ]);
  expect(ids(sortRows(rows, column("n"), "descending"))[0]).toBe("slide-9");
  expect(ids(sortRows(rows, column("k:native"), "ascending"))).toEqual([
    "<b>",
    "Slide-2",
    "slide-9",
    "slide-10",
  ]);
});

test("what is not defined comes last in both directions", () => {
  for (const direction of ["ascending", "descending"] as const) {
    const sorted = sortRows(rows, column("faithfulness:native"), direction);
    expect(sorted[3].id).toBe("slide-10");
    expect(sortRows(rows, column("label"), direction)[3].id).toBe("<b>");
  }
});

test("every column has a text for every row", () => {
  for (const each of columnsOf(payload)) {
    for (const row of rows) expect(each.text(row)).not.toMatch(/NaN|null|undefined/);
  }
  expect(column("k:selector").text(rows[0])).toBe("> 256");
  expect(column("k:selector").text(rows[1])).toBe("87.5 *");
  expect(column("k:selector").text(rows[2])).toBe("1");
  expect(column("decisive:selector").text(rows[0])).toBe("none");
  expect(column("decisive:selector").text(rows[1])).toBe("20 *");
  expect(column("decisive:native").text(rows[1])).toBe("30");
  expect(column("predicted").text(rows[0])).toBe("LUSC ✗");
});

test("hardest and most compact first are each other's reverse", () => {
  const hardest = ids(sortByHardness(rows, 1, true));
  expect(hardest).toEqual(["slide-10", "slide-9", "Slide-2", "<b>"]);
  expect(ids(sortByHardness(rows, 1, false))).toEqual([...hardest].reverse());
});

test("filters by text, class and failure, all at once", () => {
  const kept = (part: Partial<typeof NO_FILTER>) =>
    ids(filterRows(rows, { ...NO_FILTER, ...part }, 1));
  expect(kept({})).toEqual(ids(rows));
  expect(kept({ text: " SLIDE-" })).toEqual(["slide-10", "slide-9", "Slide-2"]);
  expect(kept({ text: "p1" })).toEqual(["slide-10", "slide-9"]);
  expect(kept({ wrong: true })).toEqual(["slide-10"]);
  expect(kept({ unreached: true })).toEqual(["slide-10"]);
  expect(kept({ undecided: true })).toEqual(["slide-10", "Slide-2"]);
  expect(kept({ fallsBack: true })).toEqual(["slide-9"]);
  expect(kept({ fallsBack: true, undecided: true })).toEqual([]);
  expect(kept({ label: "LUSC" })).toEqual(["slide-9", "Slide-2"]);
  expect(kept({ label: "LUSC", text: "2" })).toEqual(["Slide-2"]);
});

test("the proven minimum stands beside the deciding tiles", () => {
  expect(rows.map(column("least").text)).toEqual(["none, proven", "18", "4", "≥ 5"]);
  expect(decidingText(payload, 0, ["native"])).toBe(NO_SET);
  expect(decidingText(payload, 1, ["native", null])).toBe(
    "deciding tiles, native: 30 tiles, proven minimum 18",
  );
  expect(decidingText(payload, 3, ["native", "selector"])).toBe(
    "deciding tiles, native: 9 tiles, selector: 8 tiles, proven to be at least 5",
  );
  const unknown = { ...payload.slides, k_star: [null], proof: ["no bound"] };
  const other = { ...payload, slides: unknown } as AuditPayload;
  expect(columnsOf(other).some((one) => one.key === "least")).toBe(false);
  expect(decidingText(other, 0, ["native"])).toBe("deciding tiles, native: none");
});
