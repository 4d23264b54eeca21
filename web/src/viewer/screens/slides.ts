/** Screen of the slides: the three answers, a dot per slide, and the table of slides. */

import { h, s } from "../../page/dom";
import { percent } from "../../page/format";
import { slideDots } from "../parts/slideDots";
import { slideTable } from "../parts/slideTable";
import type { ScreenView, Session } from "../session";
import type { ViewerCohort } from "../types.generated";

export function slidesScreen(session: Session): ScreenView {
  const { cohort } = session;
  const open = (number: number) =>
    session.go({
      screen: "slide",
      slide: cohort.audit.slides.id[number],
      k: null,
      viewport: null,
    });
  const table = slideTable(session, open);
  return {
    element: h(
      "div",
      { class: "screen cohort-screen" },
      h("h1", { tabindex: -1 }, cohort.name),
      facts(cohort),
      cohort.alarms.length ? notes(cohort.alarms) : null,
      cohort.answers.length
        ? h("div", { class: "answers" }, ...cohort.answers.map(card))
        : h("p", { class: "empty" }, "This audit has no answers; foci audit gives them."),
      h(
        "div",
        { class: "cohort-body" },
        h("section", { "aria-label": "One dot per slide" }, slideDots(cohort, open)),
        h("section", { "aria-label": "Slides" }, table),
      ),
      cohort.notes.length
        ? h("details", { class: "audit-notes" }, h("summary", {}, "Notes"), notes(cohort.notes))
        : null,
    ),
  };
}

function facts({ audit, flags }: ViewerCohort): HTMLElement {
  const shown = flags.image.filter(Boolean).length;
  const decided = flags.undecided.filter((one) => !one).length;
  return h(
    "p",
    { class: "facts" },
    h("b", {}, `${audit.slides.id.length} slides`),
    ` · the model is sure of ${decided} (at least ${percent(audit.kappa)})`,
    shown
      ? ` · ${shown} with tissue`
      : " · no images: tiles are drawn on a lattice (give --slides DIR for tissue)",
  );
}

const SIGNS = {
  good: () => s("circle", { cx: 6, cy: 6, r: 5.5 }),
  part: () => s("path", { d: "M1 1h10v10H1z" }),
  bad: () => s("path", { d: "M4.2 0h3.6v4.2H12v3.6H7.8V12H4.2V7.8H0V4.2h4.2z" }),
  none: () => s("path", { d: "M6 0l6 6-6 6-6-6z" }),
};

const PLAIN: Record<string, string> = { headroom: "a better order exists" };

const notes = (lines: string[]) =>
  h("ul", { class: "notes" }, ...lines.map((line) => h("li", {}, line)));

/** The question, the answer, its first sentence; the others unfold. */
function card({ question, short, tone, sentences }: ViewerCohort["answers"][number]): HTMLElement {
  const sign = s("svg", { viewBox: "0 0 12 12", "aria-hidden": "true" }, SIGNS[tone]());
  return h(
    "div",
    {},
    h("h2", {}, question),
    h("p", { class: "short" }, h("span", { class: `badge ${tone}` }, sign, PLAIN[short] ?? short)),
    ...sentences.slice(0, 1).map((sentence) => h("p", {}, sentence)),
    sentences.length > 1
      ? h(
          "details",
          {},
          h("summary", {}, "What it rests on"),
          ...sentences.slice(1).map((sentence) => h("p", {}, sentence)),
        )
      : null,
  );
}
