/** Squares written straight into the pixels of a canvas: 20,000 of them take a few milliseconds. */

import type { OpenSlide } from "../openSlide";
import type { Place } from "./stage";

export type Shade = [number, number, number];

/** Pixels by canvas, used again as long as its size stays. */
const kept = new WeakMap<HTMLCanvasElement, ImageData>();

export class Raster {
  readonly #context: CanvasRenderingContext2D;
  readonly #image: ImageData;
  readonly #pixels: Uint32Array;
  readonly #at: Place;
  readonly #slide: OpenSlide;

  constructor(context: CanvasRenderingContext2D, at: Place, slide: OpenSlide) {
    const { canvas } = context;
    let image = kept.get(canvas);
    if (image?.width !== canvas.width || image.height !== canvas.height) {
      image = context.createImageData(canvas.width, canvas.height);
      kept.set(canvas, image);
    }
    this.#context = context;
    this.#image = image;
    this.#pixels = new Uint32Array(image.data.buffer);
    this.#pixels.fill(0);
    this.#at = at;
    this.#slide = slide;
  }

  /** Side of a tile in pixels of the page. */
  get side(): number {
    return this.#slide.side * this.#at.scale;
  }

  /** Fill a tile, but for a margin in pixels of the page; what was there is replaced. */
  fill(tile: number, inset: number, value: number): void {
    const { scale, ratio } = this.#at;
    const { width, height } = this.#image;
    const from = (this.#at.x + this.#slide.left[tile] * scale) * ratio;
    const above = (this.#at.y + this.#slide.top[tile] * scale) * ratio;
    const side = this.#slide.side * scale * ratio;
    const margin = Math.round(inset * ratio);
    let left = Math.round(from) + margin;
    let right = Math.round(from + side) - margin;
    let top = Math.round(above) + margin;
    let bottom = Math.round(above + side) - margin;
    if (right <= left) right = left + 1;
    if (bottom <= top) bottom = top + 1;
    if (right <= 0 || bottom <= 0 || left >= width || top >= height) return;
    left = left < 0 ? 0 : left;
    top = top < 0 ? 0 : top;
    right = right > width ? width : right;
    bottom = bottom > height ? height : bottom;
    for (let row = top; row < bottom; row++)
      this.#pixels.fill(value, row * width + left, row * width + right);
  }

  /** Show the squares; everything else on the canvas is gone. */
  put(): void {
    this.#context.putImageData(this.#image, 0, 0);
  }
}

/** A colour with its opacity (0 to 1) as one pixel. */
export function pixel([red, green, blue]: Shade, opacity = 1): number {
  return ((Math.round(255 * opacity) << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** Channels of a colour that is written as #rrggbb. */
export function channels(hex: string): Shade {
  const value = Number.parseInt(hex.slice(1, 7), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}
