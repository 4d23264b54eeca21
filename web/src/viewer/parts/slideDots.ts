/** A dot per slide: deciding tiles under the model's map against the order it is compared with. */

import { dotPlot, type SlidePoint } from "../../dots/dotPlot";
import { h } from "../../page/dom";
import { percent, tiles } from "../../page/format";
import type { ViewerCohort } from "../types.generated";

/** The ranking on the vertical axis: the best, or random orders where there is no other. */
export function otherThan({ audit, native, best }: ViewerCohort): string | null {
  if (best !== null) return best;
  return native !== "random" && audit.slides.measures.random ? "random" : null;
}

/** Tiles of every slide under a ranking, null where there are none. */
export interface Needed {
  /** Deciding tiles; where removal was not measured, tiles that are enough. */
  what: "deciding tiles" | "tiles that are enough";
  counts: Record<string, (number | null)[]>;
}

export function neededBy({ audit }: ViewerCohort, rankings: string[]): Needed {
  const measures = rankings.map((name) => audit.slides.measures[name]);
  const decided = measures.every(({ found }) => found.some((share) => share !== null));
  return {
    what: decided ? "deciding tiles" : "tiles that are enough",
    counts: Object.fromEntries(
      rankings.map((name, i) => {
        const { decisive, k, reach } = measures[i];
        return [name, decided ? decisive : k.map((count, id) => (reach[id] === 0 ? null : count))];
      }),
    ),
  };
}

export function slideDots(cohort: ViewerCohort, open: (number: number) => void): HTMLElement {
  const { audit, flags, native, names } = cohort;
  const other = otherThan(cohort);
  if (other === null)
    return h("p", { class: "empty" }, "There is one ranking only: nothing to compare it with.");
  const { what, counts } = neededBy(cohort, [native, other]);
  const said = (count: number | null) => (count === null ? "none" : `${tiles(count)} tiles`);
  const points: SlidePoint[] = audit.slides.id.map((name, id) => {
    const [x, y] = [counts[native][id], counts[other][id]];
    const hollow = flags.undecided[id];
    const label = `${name}: ${names[native]} ${said(x)}, ${names[other]} ${said(y)}`;
    return { id, x, y, hollow, label: hollow ? `${label}, not sure` : label };
  });
  const fewest = (value: number | null) => value ?? Infinity;
  const fewer = points.filter(({ x, y }) => fewest(y) < fewest(x)).length;
  const more = points.filter(({ x, y }) => fewest(y) > fewest(x)).length;
  const description =
    `${names[other]} has fewer ${what} than ${names[native]} on ${fewer} of ${points.length} ` +
    `slides and more on ${more}`;
  const title = `${what[0].toUpperCase()}${what.slice(1)}, slide by slide`;
  return h(
    "figure",
    {},
    h("h2", {}, title),
    dotPlot({
      points,
      kMax: audit.k_max,
      xLabel: `${what}, ${names[native]}`,
      yLabel: `${what}, ${names[other]}`,
      lane: "none",
      below: `fewer with ${names[other]}`,
      above: `fewer with ${names[native]}`,
      description,
      open,
    }),
    h(
      "figcaption",
      {},
      `${description[0].toUpperCase()}${description.slice(1)}. Hollow: the model is less than ` +
        `${percent(audit.kappa)} sure of the whole slide. A click opens the slide.`,
    ),
  );
}
