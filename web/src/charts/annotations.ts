/** Annotations on a line chart: a horizontal level, line markers, and marks on the axis. */

import uPlot from "uplot";
import { colour } from "../page/theme";
import { drawMarker, stroke } from "./ink";
import type { LineChart } from "./lines";
import { markerIndices } from "./ticks";

export function decorate(plot: uPlot, chart: LineChart): void {
  const { ctx } = plot;
  const scale = uPlot.pxRatio;
  const at = (x: number, y: number) => [plot.valToPos(x, "x", true), plot.valToPos(y, "y", true)];
  ctx.save();
  const levels = chart.levels ?? [];
  const heights = levels.map((level) => plot.valToPos(level.y, "y", true));
  const labels = apart(heights, 14 * scale);
  for (const [i, level] of levels.entries()) {
    const { left, width } = plot.bbox;
    ctx.strokeStyle = ctx.fillStyle = colour("--text");
    ctx.lineWidth = scale;
    ctx.setLineDash(DASHES[i % DASHES.length].map((length) => length * scale));
    ctx.beginPath();
    ctx.moveTo(left, heights[i]);
    ctx.lineTo(left + width, heights[i]);
    ctx.stroke();
    ctx.font = `${12 * scale}px system-ui, sans-serif`;
    ctx.textAlign = "left";
    ctx.textBaseline = "middle";
    ctx.fillText(level.label, left + width + 6 * scale, labels[i]);
  }
  ctx.setLineDash([]);
  for (const line of chart.lines) {
    if (line.hidden || line.ink.marker === "none") continue;
    ctx.fillStyle = stroke(line.ink);
    for (const i of markerIndices(chart.x, chart.logX ?? false)) {
      const y = line.y[i];
      if (y == null) continue;
      const [px, py] = at(chart.x[i], y);
      drawMarker(ctx, line.ink.marker, px, py, 3.2 * scale);
    }
  }
  for (const mark of chart.marks ?? []) {
    const [px, py] = at(mark.x, mark.y);
    const floor = plot.bbox.top + plot.bbox.height;
    ctx.strokeStyle = ctx.fillStyle = stroke(mark.ink);
    ctx.lineWidth = 1.25 * scale;
    ctx.setLineDash([3 * scale, 3 * scale]);
    ctx.beginPath();
    ctx.moveTo(px, py);
    ctx.lineTo(px, floor);
    ctx.stroke();
    ctx.setLineDash([]);
    if (mark.says !== undefined) {
      ring(ctx, px, py, scale, mark.says, plot.bbox);
      continue;
    }
    drawMarker(ctx, "triangle", px, floor - 5 * scale, 5 * scale);
    if (mark.hollow) {
      ctx.fillStyle = colour("--page");
      drawMarker(ctx, "triangle", px, floor - 5 * scale, 2.6 * scale);
    }
  }
  ctx.restore();
}

/** A ring at the point, and what it says on the side that has space. */
function ring(
  ctx: CanvasRenderingContext2D,
  x: number,
  y: number,
  scale: number,
  says: string,
  box: uPlot.BBox,
): void {
  ctx.lineWidth = 2.5 * scale;
  ctx.beginPath();
  ctx.arc(x, y, 6 * scale, 0, 2 * Math.PI);
  ctx.stroke();
  const leftwards = x > box.left + 0.7 * box.width;
  ctx.font = `600 ${12 * scale}px system-ui, sans-serif`;
  ctx.textAlign = leftwards ? "right" : "left";
  ctx.textBaseline = "middle";
  ctx.fillText(says, x + (leftwards ? -11 : 11) * scale, Math.max(y, box.top + 10 * scale));
}

/** Dashes of the first level (the threshold) and of the second (the whole slide). */
const DASHES = [
  [6, 3, 1, 3],
  [1.5, 3],
];

/** Positions of labels, moved apart where they would cover each other. */
export function apart(places: number[], least: number): number[] {
  const order = places.map((_, i) => i).sort((a, b) => places[a] - places[b]);
  const moved = [...places];
  for (let i = 1; i < order.length; i++) {
    const [above, below] = [order[i - 1], order[i]];
    const short = least - (moved[below] - moved[above]);
    if (short <= 0) continue;
    moved[above] -= short / 2;
    moved[below] += short / 2;
  }
  return moved;
}
