/**
 * Canvases with at least two pixels per CSS pixel, so that they stay sharp on paper.
 * uPlot reads devicePixelRatio when it is loaded: import this first.
 */

const real = window.devicePixelRatio || 1;
Object.defineProperty(window, "devicePixelRatio", {
  configurable: true,
  get: () => Math.max(2, real),
});
