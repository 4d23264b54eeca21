/** Positions of tiles on a map, in pixels. */

export interface TileLayout {
  width: number;
  height: number;
  side: number;
  left: Float64Array;
  top: Float64Array;
  /** Pixels per unit of the corners, and where x = 0 lies. */
  scale: number;
  shift: number;
}

export interface Corners {
  x: ArrayLike<number>;
  y: ArrayLike<number>;
  /** Side of a tile in the unit of the corners. */
  side: number;
}

/** Scale the tiles to fit a box; a tile is never smaller than two pixels. */
export function fit({ x, y, side }: Corners, width: number, maxHeight: number): TileLayout {
  const right = Math.max(...Array.from(x)) + side;
  const bottom = Math.max(...Array.from(y)) + side;
  const scale = Math.min(width / right, maxHeight / bottom, MAX_TILE / side);
  const shift = (width - right * scale) / 2;
  const count = x.length;
  const left = new Float64Array(count);
  const top = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    left[i] = shift + x[i] * scale;
    top[i] = y[i] * scale;
  }
  return {
    width,
    height: Math.ceil(bottom * scale),
    side: Math.max(side * scale, 2),
    left,
    top,
    scale,
    shift,
  };
}

const MAX_TILE = 40;

/** Corners for tiles without coordinates: a plain grid, row by row, in bag order. */
export function gridCorners(count: number): Corners {
  const columns = Math.max(1, Math.ceil(Math.sqrt(count * 1.4)));
  return {
    x: Array.from({ length: count }, (_, i) => i % columns),
    y: Array.from({ length: count }, (_, i) => Math.floor(i / columns)),
    side: 1,
  };
}

/** The topmost tile under a point, or null. */
export function tileAt(layout: TileLayout, px: number, py: number): number | null {
  for (let i = layout.left.length - 1; i >= 0; i--) {
    const dx = px - layout.left[i];
    const dy = py - layout.top[i];
    if (dx >= 0 && dy >= 0 && dx < layout.side && dy < layout.side) return i;
  }
  return null;
}

/** Jaccard index of the first k tiles of two orders. */
export function jaccard(first: ArrayLike<number>, second: ArrayLike<number>, k: number): number {
  const a = new Set(Array.from(first).slice(0, k));
  const b = new Set(Array.from(second).slice(0, k));
  let shared = 0;
  for (const tile of a) if (b.has(tile)) shared++;
  return shared / (a.size + b.size - shared);
}

/** The nearest tile in the direction of an arrow key; the same tile if there is none. */
export function neighbour({ left, top, side }: TileLayout, from: number, key: string): number {
  const across = key === "ArrowLeft" || key === "ArrowRight";
  const sign = key === "ArrowRight" || key === "ArrowDown" ? 1 : -1;
  let [best, least] = [from, Infinity];
  for (let i = 0; i < left.length; i++) {
    const [dx, dy] = [left[i] - left[from], top[i] - top[from]];
    const ahead = sign * (across ? dx : dy);
    if (ahead < side / 2) continue;
    // A step aside counts three times, so that the way stays straight where it can.
    const distance = ahead + 3 * Math.abs(across ? dy : dx);
    if (distance < least) [best, least] = [i, distance];
  }
  return best;
}
