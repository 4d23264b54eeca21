/** Two stages side by side, locked, with a heading above each. */

import { h } from "../../page/dom";
import type { OpenSlide } from "../openSlide";
import type { Session } from "../session";
import { lock } from "../tissue/lock";
import { type Stage, stage } from "../tissue/stage";

export interface StagePair {
  element: HTMLElement;
  stages: [Stage, Stage];
  heads: [HTMLElement, HTMLElement];
  close(): void;
}

const WAIT_MS = 250;

export function stagePair(session: Session, slide: OpenSlide, labels: [string, string]): StagePair {
  const first = session.state.viewport;
  const stages = labels.map((label) => stage(slide, label, first)) as [Stage, Stage];
  let timer: ReturnType<typeof setTimeout> | null = null;
  const moved = () => {
    if (timer !== null) clearTimeout(timer);
    timer = setTimeout(() => session.remember({ viewport: stages[0].viewport() }), WAIT_MS);
  };
  lock(...stages, moved);
  const head = () => h("div", { class: "stage-head" });
  const heads: [HTMLElement, HTMLElement] = [head(), head()];
  return {
    element: h(
      "div",
      { class: "stage-pair" },
      ...stages.map((one, i) => h("section", { "aria-label": labels[i] }, heads[i], one.element)),
    ),
    stages,
    heads,
    close() {
      if (timer !== null) clearTimeout(timer);
      for (const one of stages) one.close();
    },
  };
}
