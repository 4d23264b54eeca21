import { expect, test } from "vitest";

const sources = import.meta.glob<string>("../src/**/*.{ts,css}", {
  query: "?raw",
  import: "default",
  eager: true,
});
const files = Object.entries(sources).map(([path, text]) => ({
  path: path.replace("../src/", ""),
  text,
}));
const folderOf = (path: string) => (path.includes("/") ? path.split("/")[0] : "");

/** What each folder may import from, beside itself. */
const BELOW: Record<string, string[]> = {
  page: [],
  charts: ["page"],
  dots: ["page", "charts"],
  figures: ["page", "charts", "dots"],
  tiles: ["page", "charts"],
  slides: ["page", "charts", "tiles"],
  viewer: ["page", "charts", "dots", "slides", "style", "tiles"],
  "": ["page", "charts", "dots", "figures", "slides", "style", "tiles"],
};

test("folders import from folders below them only", () => {
  const scripts = files.filter(({ path }) => path.endsWith(".ts"));
  expect(scripts.length).toBeGreaterThan(30);
  for (const { path, text } of scripts) {
    for (const [, from] of text.matchAll(/"(\.[^"]+)"/g)) {
      const folder = folderOf(new URL(from, `file:///${path}`).pathname.slice(1));
      expect([folderOf(path), ...BELOW[folderOf(path)]], `${path}: ${from}`).toContain(folder);
    }
  }
});

test("every folder has its place in the order", () => {
  const folders = [...new Set(files.map(({ path }) => folderOf(path)))];
  expect(folders.sort()).toEqual([...Object.keys(BELOW), "style"].sort());
});
