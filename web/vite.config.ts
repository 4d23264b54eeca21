import { readFileSync } from "node:fs";
import { defineConfig } from "vite";

// The licence of what is bundled travels with it.
const licence = readFileSync(new URL("node_modules/uplot/LICENSE", import.meta.url), "utf8");

export default defineConfig({
  build: {
    outDir: "../src/foci/reports/page/bundle",
    emptyOutDir: true,
    target: "es2022",
    lib: {
      entry: "src/main.ts",
      formats: ["iife"],
      name: "foci",
      fileName: () => "report.js",
      cssFileName: "report",
    },
    rollupOptions: {
      output: { postBanner: `/*! Contains uPlot.\n${licence.trim()}\n*/` },
    },
  },
});
