import uPlot from "uplot";
import { afterEach, expect, test, vi } from "vitest";
import { canvasPerPlotPixel, canvasRatio, sharpen, sizeCanvas } from "../../src/charts/sharp";

afterEach(() => vi.unstubAllGlobals());

/** A canvas that remembers its scale. */
function blank(width: number, height: number) {
  const canvas = { width, height, scale: [1, 1], getContext: () => context };
  const context = { canvas, scale: (x: number, y: number) => (canvas.scale = [x, y]) };
  return { canvas, context: context as unknown as CanvasRenderingContext2D };
}

test.each([
  [1, 2],
  [1.25, 2],
  [2, 2],
  [3, 3],
])("a screen of ratio %d draws at %d, also after a zoom", (screen, ratio) => {
  vi.stubGlobal("devicePixelRatio", screen);
  uPlot.pxRatio = screen;
  expect(canvasRatio()).toBe(ratio);

  const own = blank(0, 0);
  sizeCanvas(own.canvas as unknown as HTMLCanvasElement, 400, 300);
  expect(own.canvas).toMatchObject({ width: 400 * ratio, height: 300 * ratio });
  expect(own.canvas.scale).toEqual([ratio, ratio]);

  expect(canvasPerPlotPixel()).toBe(ratio / screen);
  const plot = blank(400 * screen, 300 * screen);
  sharpen({ ctx: plot.context });
  expect(plot.canvas).toMatchObject({ width: 400 * ratio, height: 300 * ratio });
  expect(plot.canvas.scale).toEqual([ratio / screen, ratio / screen]);
  expect(devicePixelRatio).toBe(screen);
});
