/** Frame of a figure: heading, controls, chart, caption, and a table of its numbers. */

import { h } from "../page/dom";

export interface FigureParts {
  title: string;
  caption: string;
  controls?: HTMLElement[];
  body: Node[];
  numbers?: HTMLTableElement;
  wide?: boolean;
}

export function figure({
  title,
  caption,
  controls = [],
  body,
  numbers,
  wide,
}: FigureParts): HTMLElement {
  const head = h("div", { class: "figure-head" }, h("h3", {}, title), ...controls);
  return h(
    "figure",
    { class: wide ? "wide" : null },
    head,
    ...body,
    h("figcaption", {}, caption),
    numbers
      ? h(
          "details",
          { class: "numbers" },
          h("summary", {}, "The numbers"),
          h(
            "div",
            { class: "scroll", tabindex: 0, role: "region", "aria-label": `The numbers: ${title}` },
            numbers,
          ),
        )
      : null,
  );
}
