/** Line chart with its legend and a checkbox for a logarithmic axis. */

import { checkbox } from "../page/dom";
import { onTheme } from "../page/theme";
import { legend } from "./legend";
import { drawLines, type DrawnLines, type LineChart } from "./lines";

export interface Chart {
  body: HTMLElement[];
  logX: HTMLLabelElement;
  drawn: DrawnLines;
}

/** `x` is the short name of the horizontal axis; the legend shows it with the value there. */
export function chartOf(chart: LineChart, x: string): Chart {
  const key = legend(chart.lines, { label: x, values: chart.x }, () => drawn.draw(chart));
  const hover = chart.onHover;
  chart.onHover = (index) => {
    key.show(index);
    hover?.(index);
  };
  const drawn = drawLines(chart);
  const logX = checkbox("log axis", chart.logX ?? false, (on) => {
    chart.logX = on;
    drawn.draw(chart);
  });
  onTheme(drawn.element, () => drawn.draw(chart));
  return { body: [key.element, drawn.element], logX, drawn };
}
