/** Canvas resolution: at least two pixels per CSS pixel, so that drawings stay sharp on paper. */

import uPlot from "uplot";

/** Canvas pixels per CSS pixel. */
export function canvasRatio(): number {
  return Math.max(2, devicePixelRatio);
}

/** Set the size of a canvas in CSS pixels, and draw on it in CSS pixels from then on. */
export function sizeCanvas(canvas: HTMLCanvasElement, width: number, height: number): void {
  const ratio = canvasRatio();
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.getContext("2d")!.scale(ratio, ratio);
}

/** Canvas pixels per pixel of uPlot, which draws at the resolution of the screen. */
export function canvasPerPlotPixel(): number {
  return canvasRatio() / uPlot.pxRatio;
}

/**
 * Enlarge the canvas that uPlot has just sized, and scale its drawing (for the setSize hook).
 *
 * uPlot has no option for the resolution. It never resets the transform and reads the size of the
 * canvas only to clear it, so it keeps drawing in its own pixels.
 */
export function sharpen(plot: Pick<uPlot, "ctx">): void {
  const { canvas } = plot.ctx;
  const factor = canvasPerPlotPixel();
  if (factor === 1) return;
  canvas.width = Math.round(canvas.width * factor);
  canvas.height = Math.round(canvas.height * factor);
  plot.ctx.scale(factor, factor);
}
