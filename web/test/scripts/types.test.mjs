import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { typesOf } from "../../scripts/types.mjs";

const SCRIPT = fileURLToPath(new URL("../../scripts/types.mjs", import.meta.url));

// Every run starts Node anew.
vi.setConfig({ testTimeout: 60_000 });

/** A union of two models as pydantic writes it: a title on every field, tuples as prefixItems. */
const SCHEMA = {
  title: "Shape",
  oneOf: [{ $ref: "#/$defs/Circle" }, { $ref: "#/$defs/Path" }],
  discriminator: { propertyName: "kind", mapping: { circle: "#/$defs/Circle" } },
  $defs: {
    Circle: {
      title: "Circle",
      description: "Round.",
      type: "object",
      properties: {
        kind: { const: "circle", default: "circle", title: "Kind", type: "string" },
        title: { title: "Title", type: "string" },
        centre: { $ref: "#/$defs/Point" },
        radius: { anyOf: [{ type: "number" }, { type: "null" }], title: "Radius" },
      },
      required: ["kind", "title", "centre", "radius"],
    },
    Path: {
      title: "Path",
      type: "object",
      additionalProperties: false,
      properties: {
        kind: { const: "path", title: "Kind", type: "string" },
        points: { type: "array", title: "Points", items: { $ref: "#/$defs/Point" } },
        note: { type: "string", title: "Note" },
        lengths: { type: "object", title: "Lengths", additionalProperties: { type: "number" } },
      },
      required: ["kind", "points", "lengths"],
    },
    Point: {
      type: "array",
      minItems: 2,
      maxItems: 2,
      prefixItems: [{ type: "integer" }, { type: "integer" }],
    },
  },
};

const TYPES = `/* generated; do not edit */

export type Shape = Circle | Path;
export type Point = [number, number];

/**
 * Round.
 */
export interface Circle {
  kind: "circle";
  title: string;
  centre: Point;
  radius: number | null;
}
export interface Path {
  kind: "path";
  points: Point[];
  note?: string;
  lengths: {
    [k: string]: number;
  };
}
`;

let folder;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "types-"));
  writeFileSync(join(folder, "schema.json"), JSON.stringify(SCHEMA));
});
afterEach(() => rmSync(folder, { recursive: true }));

const run = (...options) =>
  spawnSync(process.execPath, [SCRIPT, "schema.json", "types.ts", ...options], {
    cwd: folder,
    encoding: "utf8",
  });

test("models become interfaces, aliases types, and fields no types of their own", async () => {
  expect(await typesOf(SCHEMA, "types.ts")).toBe(TYPES);
});

test("the script writes the types, and the check accepts them", () => {
  expect(run()).toMatchObject({ status: 0, stderr: "" });
  expect(readFileSync(join(folder, "types.ts"), "utf8")).toBe(TYPES);
  expect(run("--check")).toMatchObject({ status: 0, stderr: "" });
});

test("the check fails on types that differ or are not there, and leaves the file alone", () => {
  const line = "types.mjs: types.ts: differs from schema.json; run npm run types\n";
  expect(run("--check")).toMatchObject({ status: 1, stderr: line });
  const older = TYPES.replace("  note?: string;\n", "");
  writeFileSync(join(folder, "types.ts"), older);
  expect(run("--check")).toMatchObject({ status: 1, stderr: line });
  expect(readFileSync(join(folder, "types.ts"), "utf8")).toBe(older);
});

test("errors are one line", () => {
  writeFileSync(join(folder, "schema.json"), JSON.stringify({ $defs: SCHEMA.$defs }));
  const { status, stderr } = run();
  expect(status).toBe(1);
  expect(stderr).toMatch(/^types\.mjs: the schema needs a title and a root: .*\n$/);
});
