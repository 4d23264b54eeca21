/** Small multiples of a comparison: the chart of every audit, all on one scale. */

import type { ComparisonPayload } from "../page/payload";
import { carriedChart } from "./carried";

const HEIGHT = 250;

export function comparisonCharts({ audits }: ComparisonPayload): void {
  for (const place of document.querySelectorAll<HTMLElement>(".multiple-chart")) {
    const { carried, map_called } = audits[Number(place.dataset.audit)];
    if (carried) place.replaceChildren(carriedChart(carried, map_called, HEIGHT, false));
    else place.textContent = "No slide is sure, or no tiles were removed: nothing to draw.";
  }
}
