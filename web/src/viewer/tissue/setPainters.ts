/** Painters that compare two rankings: who has which tile among its first K, and rank against rank. */

import { drawMarker, type Marker } from "../../charts/ink";
import type { OpenSlide } from "../openSlide";
import { inView, lattice } from "./painters";
import { channels, pixel, Raster, type Shade } from "./raster";
import type { Painter, Place } from "./stage";

export type Part = "a" | "b" | "both";
export const PARTS: Part[] = ["a", "b", "both"];

/** Shape and colour of each part: it can be told without colour. */
export const LOOK: Record<Part, { marker: Marker; shade: string; name: string }> = {
  a: { marker: "square", shade: "#ffd60a", name: "A only" },
  b: { marker: "triangle", shade: "#00c2e0", name: "B only" },
  both: { marker: "circle", shade: "#ffffff", name: "both" },
};

/** The first K tiles of two rankings, apart. */
export function partsOf(
  { ranks, data }: OpenSlide,
  [a, b]: [string, string],
  k: number,
): Record<Part, number[]> {
  const parts: Record<Part, number[]> = { a: [], b: [], both: [] };
  for (let tile = 0; tile < data.n; tile++) {
    const [first, second] = [ranks[a][tile] <= k, ranks[b][tile] <= k];
    if (first || second) parts[first && second ? "both" : first ? "a" : "b"].push(tile);
  }
  return parts;
}

export function partsPainter(pair: [string, string], k: number): Painter {
  return (context, at, slide) => {
    const raster = new Raster(context, at, slide);
    if (slide.pyramid === null) lattice(raster, slide);
    const parts = partsOf(slide, pair, k);
    for (const part of PARTS)
      for (const tile of parts[part]) {
        if (raster.side < 7) continue;
        raster.fill(tile, 0, DARK);
        raster.fill(tile, 1, pixel(channels(LOOK[part].shade)));
        raster.fill(tile, 3, 0);
      }
    raster.put();
    for (const part of PARTS) mark(context, at, slide, parts[part], part);
  };
}

/** A marker in the middle of each tile: its shape says the part without colour. */
function mark(
  context: CanvasRenderingContext2D,
  at: Place,
  slide: OpenSlide,
  tiles: number[],
  part: Part,
): void {
  const { marker, shade } = LOOK[part];
  const radius = Math.min(Math.max((slide.side * at.scale) / 4, 3.5), 9);
  for (const tile of tiles.filter(inView(at, slide))) {
    const x = at.x + (slide.left[tile] + slide.side / 2) * at.scale;
    const y = at.y + (slide.top[tile] + slide.side / 2) * at.scale;
    context.fillStyle = "#10131a";
    drawMarker(context, marker, x, y, radius + 1.5);
    context.fillStyle = shade;
    drawMarker(context, marker, x, y, radius);
  }
}

/** By how many doublings a tile comes earlier in A (positive) or in B (negative). */
export function doublings(rankA: number, rankB: number): number {
  return Math.log2(rankB / rankA);
}

const EARLIER_A: Shade = [150, 75, 0];
const EARLIER_B: Shade = [20, 80, 170];
const EVEN: Shade = [240, 240, 240];
const DARK = pixel([16, 19, 26]);
/** Doublings at which the colour is full. */
export const MOST = 6;
const VEIL = 0.82;
const SIGNED = 1;

/** Colour of a difference: brown where a tile comes earlier in A, blue where in B. */
export function differenceShade(value: number): Shade {
  const share = Math.min(Math.abs(value) / MOST, 1);
  const end = value > 0 ? EARLIER_A : EARLIER_B;
  return EVEN.map((from, i) => Math.round(from + share * (end[i] - from))) as Shade;
}

/** Every tile by the signed difference of its ranks; + and − say the sign without colour. */
export function differencePainter([a, b]: [string, string]): Painter {
  return (context, at, slide) => {
    const raster = new Raster(context, at, slide);
    const { side } = raster;
    const value = (tile: number) => doublings(slide.ranks[a][tile], slide.ranks[b][tile]);
    for (let tile = 0; tile < slide.left.length; tile++)
      raster.fill(
        tile,
        side > 7 ? 1 : 0,
        pixel(differenceShade(value(tile)), slide.pyramid ? VEIL : 1),
      );
    raster.put();
    if (side < 9) return;
    const shown = inView(at, slide);
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.font = `600 ${Math.min(side * 0.6, 22)}px system-ui, sans-serif`;
    for (let tile = 0; tile < slide.left.length; tile++) {
      const by = value(tile);
      if (Math.abs(by) < SIGNED || !shown(tile)) continue;
      context.fillStyle = Math.abs(by) > MOST / 2 ? "#fff" : "#111";
      const x = at.x + (slide.left[tile] + slide.side / 2) * at.scale;
      const y = at.y + (slide.top[tile] + slide.side / 2) * at.scale;
      context.fillText(by > 0 ? "+" : "−", x, y);
    }
  };
}
