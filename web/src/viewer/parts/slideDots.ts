/** A dot per slide: tiles needed under the native ranking against the one it is compared with. */

import { dotPlot, type SlidePoint } from "../../dots/dotPlot";
import { h } from "../../page/dom";
import { tiles } from "../../page/format";
import type { ViewerCohort } from "../types.generated";

/** The ranking on the vertical axis: the best, or random orders where there is no other. */
export function otherThan({ audit, native, best }: ViewerCohort): string | null {
  if (best !== null) return best;
  return native !== "random" && audit.slides.measures.prediction!.random ? "random" : null;
}

export function pointsOf(cohort: ViewerCohort, other: string): SlidePoint[] {
  const { audit, flags, native } = cohort;
  const { slides } = audit;
  const [first, second] = [native, other].map((name) => slides.measures.prediction![name]);
  return slides.id.map((name, id) => {
    const x = first.reach[id] === 0 ? null : first.k[id];
    const y = second.reach[id] === 0 ? null : second.k[id];
    const said = (count: number | null) => (count === null ? "never" : `${tiles(count)} tiles`);
    const undecided = flags.undecided[id] ? ", undecided" : "";
    const label = `${name}: ${native} ${said(x)}, ${other} ${said(y)}${undecided}`;
    return { id, x, y, hollow: flags.undecided[id], label };
  });
}

export function slideDots(cohort: ViewerCohort, open: (number: number) => void): HTMLElement {
  const { audit, native } = cohort;
  const other = otherThan(cohort);
  if (other === null)
    return h("p", { class: "empty" }, "There is one ranking only: nothing to compare it with.");
  const points = pointsOf(cohort, other);
  const count = (value: number | null) => value ?? Infinity;
  const fewer = points.filter(({ x, y }) => count(y) < count(x)).length;
  const more = points.filter(({ x, y }) => count(y) > count(x)).length;
  const said =
    `${other} needs fewer tiles than ${native} on ${fewer} of ${points.length} slides and more on ` +
    `${more}`;
  return h(
    "figure",
    {},
    h("h2", {}, "Tiles needed, slide by slide"),
    dotPlot({
      points,
      kMax: audit.k_max,
      xLabel: `tiles needed, ${native}`,
      yLabel: `tiles needed, ${other}`,
      lane: "never",
      below: `fewer with ${other}`,
      above: `fewer with ${native}`,
      description: said,
      open,
    }),
    h(
      "figcaption",
      {},
      `${said}. Hollow: undecided, the model itself is less than κ = ${audit.kappa} sure of the ` +
        `whole slide. n = ${points.length}, mean over seeds. A click opens the slide.`,
    ),
  );
}
