/** Painters that compare two rankings: who has which tile among its first K, and rank against rank. */

import { colour } from "../../page/theme";
import { type Marker, drawMarker } from "../../charts/ink";
import type { OpenSlide } from "../openSlide";
import { inView, paintLattice, square } from "./painters";
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
    if (slide.pyramid === null) paintLattice(context, at, slide);
    const parts = partsOf(slide, pair, k);
    for (const part of PARTS) paintPart(context, at, slide, parts[part], part);
  };
}

function paintPart(
  context: CanvasRenderingContext2D,
  at: Place,
  slide: OpenSlide,
  tiles: number[],
  part: Part,
): void {
  const { marker, shade } = LOOK[part];
  const shown = tiles.filter(inView(at, slide));
  const side = slide.side * at.scale;
  if (side >= 7)
    for (const [inset, width, line] of [
      [0.5, 1.5, "#10131a"],
      [2, 2, shade],
    ] as const) {
      context.lineWidth = width;
      context.strokeStyle = line;
      for (const tile of shown) context.strokeRect(...square(at, slide, tile, inset));
    }
  const radius = Math.min(Math.max(side / 4, 3.5), 9);
  for (const tile of shown) {
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

const EARLIER_A = [150, 75, 0];
const EARLIER_B = [20, 80, 170];
export const MOST = 6;

export const differenceColour = (value: number, light: [number, number, number]): string => {
  const share = Math.min(Math.abs(value) / MOST, 1);
  const end = value > 0 ? EARLIER_A : EARLIER_B;
  return `rgb(${light.map((from, i) => Math.round(from + share * (end[i] - from))).join(",")})`;
};

/** Every tile by the signed difference of its ranks; + and − say the sign without colour. */
export function differencePainter([a, b]: [string, string]): Painter {
  return (context, at, slide) => {
    const side = slide.side * at.scale;
    const shown = inView(at, slide);
    const { ranks } = slide;
    const onTissue = slide.pyramid !== null;
    context.globalAlpha = onTissue ? 0.82 : 1;
    const steps = new Map<number, number[]>();
    for (let tile = 0; tile < slide.left.length; tile++) {
      if (!shown(tile)) continue;
      const value = doublings(ranks[a][tile], ranks[b][tile]);
      const step = Math.max(-16, Math.min(16, Math.round((16 * value) / MOST)));
      const list = steps.get(step);
      if (list) list.push(tile);
      else steps.set(step, [tile]);
    }
    for (const [step, tiles] of steps) {
      context.fillStyle = differenceColour((step * MOST) / 16, [240, 240, 240]);
      for (const tile of tiles) context.fillRect(...square(at, slide, tile, side > 5 ? 0.5 : 0));
    }
    context.globalAlpha = 1;
    if (side < 9) return;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.font = `600 ${Math.min(side * 0.6, 22)}px system-ui, sans-serif`;
    for (const [step, tiles] of steps) {
      if (Math.abs(step) < 3) continue;
      context.fillStyle = Math.abs(step) > 8 ? "#fff" : "#111";
      for (const tile of tiles)
        context.fillText(
          step > 0 ? "+" : "−",
          at.x + (slide.left[tile] + slide.side / 2) * at.scale,
          at.y + (slide.top[tile] + slide.side / 2) * at.scale,
        );
    }
    context.fillStyle = colour("--text");
  };
}
