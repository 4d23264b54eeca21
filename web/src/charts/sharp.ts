/** Canvas resolution: at least two pixels per CSS pixel, so that drawings stay sharp on paper. */

import uPlot from "uplot";

/** Canvas pixels per CSS pixel. */
export function canvasRatio(): number {
  return Math.max(2, devicePixelRatio);
}

/** Size a canvas of our own in CSS pixels; what is drawn on it is then in CSS pixels too. */
export function sizeCanvas(canvas: HTMLCanvasElement, width: number, height: number): void {
  const ratio = canvasRatio();
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.getContext("2d")!.scale(ratio, ratio);
}

/** How many canvas pixels stand for one pixel of uPlot, which draws at the screen's resolution. */
export function canvasPerPlotPixel(): number {
  return canvasRatio() / uPlot.pxRatio;
}

/**
 * Hook for uPlot's setSize: enlarge the canvas that uPlot has just sized, and scale its drawing.
 *
 * uPlot takes its resolution from the screen and has no option for another one. It neither resets
 * the transform nor reads the canvas size back, so it goes on drawing in its own pixels.
 */
export function sharpen(plot: Pick<uPlot, "ctx">): void {
  const { canvas } = plot.ctx;
  const factor = canvasPerPlotPixel();
  if (factor === 1) return;
  canvas.width = Math.round(canvas.width * factor);
  canvas.height = Math.round(canvas.height * factor);
  plot.ctx.scale(factor, factor);
}
