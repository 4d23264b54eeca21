/** Above every screen of a slide: its name, what the model says of it, and the two rankings. */

import { h } from "../../page/dom";
import { fixed } from "../../page/format";
import { decidingText } from "../../slides/minimum";
import type { OpenSlide } from "../openSlide";
import { pairOf, type Session } from "../session";

export function slideBar(session: Session, slide: OpenSlide): HTMLElement {
  const [left, right] = pairOf(session, slide);
  const step = (by: number) => () => {
    const { listed } = session;
    const here = listed.indexOf(slide.number);
    const next = listed[(here + by + listed.length) % listed.length];
    session.go({ slide: session.cohort.audit.slides.id[next], k: null, viewport: null });
  };
  const button = (id: string, label: string, click: () => void) => {
    const element = h("button", { type: "button", id, "aria-label": label, title: label });
    element.append(id === "next-slide" ? "→" : "←");
    element.addEventListener("click", click);
    return element;
  };
  return h(
    "div",
    { class: "slide-bar" },
    h(
      "div",
      { class: "slide-title" },
      button("previous-slide", "Previous slide", step(-1)),
      button("next-slide", "Next slide", step(1)),
      h("h1", { id: "slide-name", tabindex: -1 }, slide.id),
    ),
    h("p", { class: "facts" }, ...facts(session, slide)),
    h(
      "div",
      { class: "pair" },
      choice("A", "left", left, slide, session),
      choice("B", "right", right, slide, session),
    ),
  );
}

function choice(
  letter: string,
  side: "left" | "right",
  chosen: string,
  slide: OpenSlide,
  session: Session,
): HTMLElement {
  const select = h(
    "select",
    { id: `ranking-${side}` },
    ...slide.data.columns.map((name) => h("option", { value: name }, slide.names[name])),
  );
  select.value = chosen;
  select.addEventListener("change", () => session.go({ [side]: select.value }));
  return h(
    "label",
    { class: "choice" },
    h("span", { class: `letter letter-${letter.toLowerCase()}` }, letter),
    h("span", { class: "hidden" }, `Ranking ${letter}`),
    select,
  );
}

function facts({ cohort }: Session, slide: OpenSlide): (Node | string)[] {
  const { slides, classes, kappa } = cohort.audit;
  const label = slides.label[slide.number];
  const predicted = slides.predicted[slide.number];
  const wrong = label !== null && label !== predicted;
  const badges = [
    ...(wrong ? ["misclassified"] : []),
    ...(slide.data.full < kappa ? ["not sure"] : []),
  ];
  const deciding = decidingText(
    cohort.audit,
    slide.number,
    [cohort.native, cohort.best],
    cohort.names,
  );
  return [
    `patient ${slides.case[slide.number]} · `,
    label === null ? "no label · " : `label ${classes[label]} · `,
    h("b", {}, `predicted ${slide.predicted}, p = ${fixed(slide.data.full)}`),
    ` from all ${slide.data.n} tiles`,
    ...(deciding === null ? [] : [` · ${deciding}`]),
    ...badges.map((name) => h("span", { class: "flag" }, name)),
  ];
}
