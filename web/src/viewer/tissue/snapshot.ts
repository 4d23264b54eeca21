/** Stages as a picture: PNG of what is on the screen, or SVG with the tiles as vectors. */

import type { OpenSlide } from "../openSlide";
import { inView } from "./painters";
import { lengthText, scaleBar } from "./scaleBar";
import type { Stage } from "./stage";

const GAP = 16;
const HEAD = 34;
const LINE = "Model-sufficient, not diagnostic.";

/** Tissue and tiles of one stage on a canvas of its own; `over` leaves the tiles out or in. */
function flat(stage: Stage, over: boolean): HTMLCanvasElement {
  const drawn = stage.element.querySelector<HTMLCanvasElement>(".osd canvas");
  const tiles = stage.element.querySelector<HTMLCanvasElement>("canvas.over")!;
  const canvas = document.createElement("canvas");
  canvas.width = tiles.width;
  canvas.height = tiles.height;
  const context = canvas.getContext("2d")!;
  context.fillStyle = "#fff";
  context.fillRect(0, 0, canvas.width, canvas.height);
  if (drawn) context.drawImage(drawn, 0, 0, canvas.width, canvas.height);
  if (over) context.drawImage(tiles, 0, 0);
  return canvas;
}

export async function snapshotPng(
  stages: Stage[],
  caption: string,
  slide: OpenSlide,
): Promise<Blob> {
  const parts = stages.map((one) => flat(one, true));
  const ratio = parts[0].width / (stages[0].place()?.width ?? parts[0].width);
  const [gap, head] = [GAP * ratio, HEAD * ratio];
  const canvas = document.createElement("canvas");
  canvas.width = parts.reduce((sum, part) => sum + part.width + gap, gap);
  canvas.height = parts[0].height + 2 * head;
  const context = canvas.getContext("2d")!;
  context.fillStyle = "#fff";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.fillStyle = "#111";
  context.font = `${14 * ratio}px system-ui, sans-serif`;
  context.textBaseline = "middle";
  context.fillText(caption, gap, head / 2);
  let x = gap;
  for (const part of parts) {
    context.drawImage(part, x, head);
    x += part.width + gap;
  }
  context.font = `${12 * ratio}px system-ui, sans-serif`;
  context.fillText(foot(slide), gap, head * 1.5 + parts[0].height);
  return new Promise((done, fail) =>
    canvas.toBlob((blob) => (blob ? done(blob) : fail(new Error("no picture"))), "image/png"),
  );
}

export function snapshotSvg(
  stages: Stage[],
  caption: string,
  slide: OpenSlide,
  pair: string[],
  k: number,
  colours: string[],
): Blob {
  const places = stages.map((one) => one.place()!);
  const width = places.reduce((sum, at) => sum + at.width + GAP, GAP);
  const height = places[0].height + 2 * HEAD;
  const parts: string[] = [];
  let x = GAP;
  for (const [i, at] of places.entries()) {
    const tissue = slide.pyramid ? flat(stages[i], false).toDataURL("image/jpeg", 0.9) : null;
    const shown = inView(at, slide);
    const side = slide.side * at.scale;
    const shade = colours[i];
    const squares = Array.from(slide.data.order[pair[i]].slice(0, k), (tile) => {
      if (!shown(tile)) return "";
      const left = (at.x + slide.left[tile] * at.scale).toFixed(2);
      const top = (at.y + slide.top[tile] * at.scale).toFixed(2);
      return `<rect x="${left}" y="${top}" width="${side.toFixed(2)}" height="${side.toFixed(2)}" fill="none" stroke="${shade}" stroke-width="1.5"/>`;
    });
    parts.push(
      `<svg x="${x}" y="${HEAD}" width="${at.width}" height="${at.height}">`,
      tissue ? `<image href="${tissue}" width="${at.width}" height="${at.height}"/>` : "",
      ...squares,
      bar(at.scale, at.height, at.width, slide),
      "</svg>",
    );
    x += at.width + GAP;
  }
  const text = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="system-ui, sans-serif"><rect width="100%" height="100%" fill="#fff"/><text x="${GAP}" y="22" font-size="14">${escaped(caption)}</text>${parts.join("")}<text x="${GAP}" y="${height - 12}" font-size="12">${escaped(foot(slide))}</text></svg>`;
  return new Blob([text], { type: "image/svg+xml" });
}

function bar(scale: number, height: number, width: number, slide: OpenSlide): string {
  const found = scaleBar(scale, slide, Math.min(140, width / 3));
  if (found === null) return "";
  const [x, y] = [14, height - 14];
  return `<rect x="${x - 7}" y="${y - 20}" width="${found.pixels + 14}" height="28" fill="#fff" fill-opacity="0.88"/><rect x="${x}" y="${y}" width="${found.pixels}" height="3"/><text x="${x + found.pixels / 2}" y="${y - 5}" font-size="12" text-anchor="middle">${lengthText(found.micrometres)}</text>`;
}

const foot = (slide: OpenSlide): string =>
  slide.pyramid?.mpp ? LINE : `No scale bar: the resolution is unknown. ${LINE}`;

export function escaped(text: string): string {
  const signs: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  return text.replace(/[&<>"]/g, (sign) => signs[sign]);
}
