/** A dot per slide: tiles needed under the native ranking against the one it is compared with. */

import { powersOfTwo } from "../../charts/ticks";
import { h, s } from "../../page/dom";
import { tiles } from "../../page/format";
import type { ViewerCohort } from "../types.generated";

export interface Dot {
  number: number;
  name: string;
  x: number;
  y: number;
  undecided: boolean;
  wrong: boolean;
}

/** Slides with a count under both rankings; one that never reaches κ counts as beyond k_max. */
export function dotsOf({ audit, flags, native, best }: ViewerCohort): Dot[] {
  const measures = audit.slides.measures.prediction!;
  const other = best ?? (measures.random ? "random" : null);
  if (other === null) return [];
  const [first, second] = [measures[native], measures[other]];
  const beyond = audit.k_max * 2;
  return audit.slides.id.flatMap((name, i) => {
    const [x, y] = [first.k[i], second.k[i]];
    if (x === null || y === null) return [];
    const label = audit.slides.label[i];
    return {
      number: i,
      name,
      x: first.reach[i] === 0 ? beyond : x,
      y: second.reach[i] === 0 ? beyond : y,
      undecided: flags.undecided[i],
      wrong: label !== null && label !== audit.slides.predicted[i],
    };
  });
}

const SIDE = 420;
const BOX = { left: 56, right: 14, top: 12, bottom: 50 };
const R = 4.5;

export function dotPlot(cohort: ViewerCohort, open: (number: number) => void): HTMLElement {
  const { audit, native, best } = cohort;
  const other = best ?? "random";
  const dots = dotsOf(cohort);
  if (!dots.length)
    return h("p", { class: "empty" }, "There is one ranking only: nothing to compare it with.");
  const top = audit.k_max * 2;
  const span = SIDE - BOX.left - BOX.right;
  const share = (k: number) => Math.log(Math.max(k, 1)) / Math.log(top);
  const x = (k: number) => BOX.left + span * share(k);
  const y = (k: number) => SIDE - BOX.bottom - (SIDE - BOX.top - BOX.bottom) * share(k);
  const below = dots.filter((dot) => dot.y < dot.x).length;
  const above = dots.filter((dot) => dot.y > dot.x).length;
  const said =
    `${other} needs fewer tiles than ${native} on ${below} of ${dots.length} slides, ` +
    `more on ${above}, as many on ${dots.length - below - above}`;
  const svg = s("svg", {
    viewBox: `0 0 ${SIDE} ${SIDE}`,
    class: "bars dots",
    role: "img",
    "aria-label": said,
  });
  for (const k of powersOfTwo(audit.k_max).filter((_, i) => i % 2 === 0)) {
    svg.append(
      s("line", { x1: x(k), x2: x(k), y1: BOX.top, y2: SIDE - BOX.bottom, class: "grid" }),
      s("line", { x1: BOX.left, x2: SIDE - BOX.right, y1: y(k), y2: y(k), class: "grid" }),
      s("text", { x: x(k), y: SIDE - BOX.bottom + 17, class: "tick middle" }, k),
      s("text", { x: BOX.left - 7, y: y(k) + 4, class: "tick end" }, k),
    );
  }
  svg.append(
    s("text", { x: x(top), y: SIDE - BOX.bottom + 17, class: "tick middle" }, "never"),
    s("text", { x: BOX.left - 7, y: y(top) + 4, class: "tick end" }, "never"),
    s("line", { x1: x(1), y1: y(1), x2: x(top), y2: y(top), class: "level" }),
    s("text", { x: BOX.left + span / 2, y: SIDE - 10, class: "label middle" }, `tiles, ${native}`),
    s(
      "text",
      {
        transform: `translate(13 ${(SIDE - BOX.bottom + BOX.top) / 2}) rotate(-90)`,
        class: "label middle",
      },
      `tiles, ${other}`,
    ),
  );
  for (const [dot, [dx, dy]] of spread(dots)) {
    const text = (k: number) => (k > audit.k_max ? "never" : `${tiles(k)} tiles`);
    const mark = s(
      "circle",
      {
        cx: x(dot.x) + dx,
        cy: y(dot.y) + dy,
        r: R,
        class: `dot-of-slide${dot.undecided ? " hollow" : ""}`,
      },
      s(
        "title",
        {},
        `${dot.name}: ${native} ${text(dot.x)}, ${other} ${text(dot.y)}` +
          `${dot.undecided ? ", undecided" : ""}${dot.wrong ? ", misclassified" : ""}`,
      ),
    );
    mark.addEventListener("click", () => open(dot.number));
    svg.append(mark);
  }
  return h(
    "figure",
    {},
    h("h2", {}, "Tiles needed, slide by slide"),
    svg,
    h(
      "figcaption",
      {},
      `${said}. Below the diagonal ${other} needs fewer. Hollow: undecided, the model itself is less ` +
        `than κ sure. Dots on one place are spread. n = ${dots.length}; mean over seeds.`,
    ),
  );
}

/** Dots on one place form a small sunflower around it, so that each can be seen and clicked. */
export function spread(dots: Dot[]): [Dot, [number, number]][] {
  const seen = new Map<string, number>();
  return dots.map((dot) => {
    const place = `${dot.x} ${dot.y}`;
    const nth = seen.get(place) ?? 0;
    seen.set(place, nth + 1);
    const radius = 3.4 * Math.sqrt(nth);
    const angle = 2.39996 * nth;
    return [dot, [radius * Math.cos(angle), radius * Math.sin(angle)]];
  });
}
