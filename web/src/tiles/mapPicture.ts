/** The map of a slide as a small picture: on the tissue, on its tiles, or on tiles in a row. */

import { sizeCanvas } from "../charts/sharp";
import { h } from "../page/dom";
import type { SlideMap } from "../page/payload";
import { unpack } from "../page/unpack";
import { shareChannels } from "./rankColours";
import { type Tissue, tissueOf } from "./tissue";

/** Levels of a map; 0 is a pixel without a tile, and a bit above them marks deciding tiles. */
const LEVELS = 15;
/** Margin around the tiles, as a share of the longer side. */
const MARGIN = 0.04;

export interface Grid {
  width: number;
  height: number;
  levels: number[];
  /** Pixels of tiles that carry the decision. */
  deciding: number[];
}

export function gridOf(map: SlideMap): Grid {
  const packed = Array.from(unpack(map.levels));
  return {
    width: map.width,
    height: Math.max(1, packed.length / map.width),
    levels: packed.map((value) => value & LEVELS),
    deciding: packed.flatMap((value, pixel) => (value > LEVELS ? [pixel] : [])),
  };
}

/** A canvas of this size in pixels of the page with the map in its middle. */
export function mapPicture(
  map: SlideMap,
  width: number,
  height: number,
  description: string,
): HTMLCanvasElement {
  const canvas = h("canvas", { class: "map-picture", role: "img", "aria-label": description });
  sizeCanvas(canvas, width, height);
  const grid = gridOf(map);
  const tissue = tissueOf(map);
  paintMap(canvas, map, grid, tissue, width, height);
  void tissue?.ready.then(() => {
    if (tissue.image === null) return;
    canvas.dataset.tissue = "shown";
    paintMap(canvas, map, grid, tissue, width, height);
  });
  return canvas;
}

function paintMap(
  canvas: HTMLCanvasElement,
  map: SlideMap,
  grid: Grid,
  tissue: Tissue | null,
  width: number,
  height: number,
): void {
  const context = canvas.getContext("2d")!;
  // One pixel of the map is a unit; tissue is placed in the same unit.
  const margin = MARGIN * Math.max(grid.width, grid.height);
  const scale = Math.min(width / (grid.width + 2 * margin), height / (grid.height + 2 * margin));
  const left = (width - grid.width * scale) / 2;
  const top = (height - grid.height * scale) / 2;
  context.clearRect(0, 0, width, height);
  if (tissue?.image && map.box) {
    const unit = (scale * grid.width) / map.box[2];
    context.imageSmoothingEnabled = true;
    context.drawImage(
      tissue.image,
      left + (tissue.x - map.box[0]) * unit,
      top + (tissue.y - map.box[1]) * unit,
      tissue.width * unit,
      tissue.height * unit,
    );
  }
  context.imageSmoothingEnabled = false;
  context.drawImage(
    painted(grid, Boolean(tissue?.image)),
    left,
    top,
    grid.width * scale,
    grid.height * scale,
  );
  context.strokeStyle = "#000";
  context.lineWidth = Math.min(2, Math.max(1, scale / 6));
  context.beginPath();
  for (const [x1, y1, x2, y2] of borders(grid)) {
    context.moveTo(left + x1 * scale, top + y1 * scale);
    context.lineTo(left + x2 * scale, top + y2 * scale);
  }
  context.stroke();
}

/** Sides of deciding pixels that face another one: lines between all of them would hide the map. */
export function borders({ width, deciding }: Grid): [number, number, number, number][] {
  const inside = new Set(deciding.map((pixel) => `${pixel % width},${Math.floor(pixel / width)}`));
  return deciding.flatMap((pixel) => {
    const [x, y] = [pixel % width, Math.floor(pixel / width)];
    const sides: [number, number, number, number, number, number][] = [
      [x, y - 1, x, y, x + 1, y],
      [x, y + 1, x, y + 1, x + 1, y + 1],
      [x - 1, y, x, y, x, y + 1],
      [x + 1, y, x + 1, y, x + 1, y + 1],
    ];
    return sides
      .filter(([column, row]) => !inside.has(`${column},${row}`))
      .map(([, , x1, y1, x2, y2]): [number, number, number, number] => [x1, y1, x2, y2]);
  });
}

/** The map in colours, one pixel each; on tissue the less important tiles are clearer. */
function painted({ width, height, levels }: Grid, onTissue: boolean): HTMLCanvasElement {
  const canvas = h("canvas", { width, height });
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(width, height);
  for (const [i, level] of levels.entries()) {
    if (level === 0) continue;
    const [red, green, blue] = shareChannels((LEVELS - level) / (LEVELS - 1), false);
    const alpha = onTissue ? 255 * (0.12 + 0.6 * (level / LEVELS) ** 1.5) : 255;
    image.data.set([red, green, blue, alpha], 4 * i);
  }
  context.putImageData(image, 0, 0);
  return canvas;
}
