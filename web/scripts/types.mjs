/**
 * TypeScript types from a JSON Schema, as pydantic writes it.
 *
 *   node scripts/types.mjs <schema.json> <types.ts> ...           write the types
 *   node scripts/types.mjs --check <schema.json> <types.ts> ...   exit 1 where a file differs
 */

import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { compile } from "json-schema-to-typescript";
import * as prettier from "prettier";

const OPTIONS = {
  bannerComment: "/* generated; do not edit */",
  // Pydantic models write no other fields than those they declare.
  additionalProperties: false,
  format: false,
};
const SHAPES = ["$ref", "anyOf", "oneOf", "properties"];

/** The types of a schema, formatted as Prettier is configured for the file that they go to. */
export async function typesOf(schema, path) {
  if (!schema.title || !SHAPES.some((key) => key in schema))
    throw new Error("the schema needs a title and a root: a model or a union of models");
  const text = await compile({ ...readable(schema), title: schema.title }, schema.title, OPTIONS);
  const config = await prettier.resolveConfig(path);
  return prettier.format(withoutLengths(text), { ...config, filepath: path });
}

// Keywords that hold schemas by name, and those that hold plain values.
const NAMED = new Set(["$defs", "patternProperties", "properties"]);
const VALUES = new Set(["const", "default", "enum", "examples", "required"]);

/**
 * A schema that json-schema-to-typescript reads well. It makes a named type of everything that has
 * a title, and pydantic gives every field one: only the names in `$defs` stay. It does not know
 * `prefixItems`: tuples become `items`.
 */
function readable(schema) {
  if (typeof schema !== "object" || schema === null) return schema;
  if (Array.isArray(schema)) return schema.map(readable);
  const { title, prefixItems, ...rest } = schema;
  if (prefixItems) rest.items = prefixItems;
  return mapValues(rest, (value, key) => {
    if (VALUES.has(key)) return value;
    return NAMED.has(key) ? mapValues(value, readable) : readable(value);
  });
}

function mapValues(object, change) {
  const entries = Object.entries(object).map(([key, value]) => [key, change(value, key)]);
  return Object.fromEntries(entries);
}

/** Tuple types say their length already; drop the comments that repeat it. */
function withoutLengths(text) {
  return text.replace(/^ *\* @(min|max)Items .*\n/gm, "").replace(/^ *\/\*\*\n *\*\/\n/gm, "");
}

async function main() {
  const { values, positionals } = parseArgs({
    options: { check: { type: "boolean", default: false } },
    allowPositionals: true,
  });
  if (positionals.length < 2 || positionals.length % 2)
    throw new Error("usage: types.mjs [--check] <schema.json> <types.ts> ...");
  for (let i = 0; i < positionals.length; i += 2)
    await make(positionals[i], positionals[i + 1], values.check);
}

async function make(from, to, check) {
  const types = await typesOf(JSON.parse(await readFile(from, "utf8")), to);
  if (!check) return writeFile(to, types);
  const present = await readFile(to, "utf8").catch(() => null);
  if (present !== types) throw new Error(`${to}: differs from ${from}; run npm run types`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  main().catch((error) => {
    console.error(`types.mjs: ${error.message}`);
    process.exitCode = 1;
  });
}
