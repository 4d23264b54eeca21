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
  if (chart.level) {
    const { left, width } = plot.bbox;
    const y = plot.valToPos(chart.level.y, "y", true);
    ctx.strokeStyle = ctx.fillStyle = colour("--text");
    ctx.lineWidth = scale;
    ctx.setLineDash([6 * scale, 3 * scale, scale, 3 * scale]);
    ctx.beginPath();
    ctx.moveTo(left, y);
    ctx.lineTo(left + width, y);
    ctx.stroke();
    ctx.font = `${12 * scale}px system-ui, sans-serif`;
    ctx.textAlign = "left";
    ctx.textBaseline = "middle";
    ctx.fillText(chart.level.label, left + width + 6 * scale, y);
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
    drawMarker(ctx, "triangle", px, floor - 5 * scale, 5 * scale);
  }
  ctx.restore();
}
