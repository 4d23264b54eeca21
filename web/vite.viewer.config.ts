import { readFileSync } from "node:fs";
import { defineConfig } from "vite";

// The licences of what is bundled travel with it.
const licence = (path: string) =>
  readFileSync(new URL(`node_modules/${path}`, import.meta.url), "utf8").trim();
const licences =
  `OpenSeadragon\n\n${licence("openseadragon/LICENSE.txt")}\n\n` +
  `uPlot\n\n${licence("uplot/LICENSE")}\n`;

export default defineConfig({
  plugins: [
    {
      name: "licences",
      generateBundle() {
        this.emitFile({ type: "asset", fileName: "LICENCES.txt", source: licences });
      },
    },
  ],
  build: {
    outDir: "../src/foci/viewer/page/bundle",
    emptyOutDir: true,
    target: "es2022",
    lib: {
      entry: "src/viewer/main.ts",
      formats: ["iife"],
      name: "foci",
      fileName: () => "viewer.js",
      cssFileName: "viewer",
    },
    rollupOptions: {
      output: { postBanner: "/*! Contains OpenSeadragon and uPlot; see LICENCES.txt. */" },
    },
  },
});
