/** Scale bar of a slide, where its resolution is known. */

import type { OpenSlide } from "../openSlide";
import type { Place } from "./stage";

/** The largest of 1, 2 and 5 times a power of ten that is not above a length. */
export function niceLength(widest: number): number {
  const power = 10 ** Math.floor(Math.log10(widest));
  return Math.max(...[1, 2, 5].map((m) => m * power).filter((length) => length <= widest * 1.0001));
}

export function lengthText(micrometres: number): string {
  return micrometres >= 1000 ? `${micrometres / 1000} mm` : `${micrometres} µm`;
}

/** Length of the bar in micrometres and in pixels of the screen; null where it is unknown. */
export function scaleBar(
  scale: number,
  slide: Pick<OpenSlide, "pyramid" | "pixels">,
  most: number,
): { micrometres: number; pixels: number } | null {
  const mpp = slide.pyramid?.mpp;
  if (!mpp || slide.pixels === null) return null;
  const perPixel = (slide.pixels * mpp) / scale;
  const micrometres = niceLength(most * perPixel);
  return { micrometres, pixels: micrometres / perPixel };
}

export function drawScaleBar(context: CanvasRenderingContext2D, at: Place, slide: OpenSlide): void {
  const bar = scaleBar(at.scale, slide, Math.min(140, at.width / 3));
  if (bar === null) return;
  const [x, y] = [14, at.height - 14];
  context.fillStyle = "rgba(255,255,255,0.88)";
  context.fillRect(x - 7, y - 20, bar.pixels + 14, 28);
  context.fillStyle = "#111";
  context.fillRect(x, y, bar.pixels, 3);
  context.font = "12px system-ui, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "alphabetic";
  context.fillText(lengthText(bar.micrometres), x + bar.pixels / 2, y - 5);
}
