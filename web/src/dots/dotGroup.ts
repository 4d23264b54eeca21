/** Dots of slides in an SVG: one tab stop, arrow keys go from dot to dot, Enter opens the slide. */

import { s } from "../page/dom";

export interface Dot {
  /** Index of the slide. */
  id: number;
  x: number;
  y: number;
  /** What a pointer over the dot shows and a screen reader says. */
  label: string;
  hollow: boolean;
  className: string;
}

export function dotGroup(
  dots: Dot[],
  radius: number,
  name: string,
  open?: (id: number) => void,
): SVGGElement {
  const group = s("g", { class: "dots", role: "group", "aria-label": name });
  const drawn = dots.map((dot) =>
    s(
      "circle",
      {
        cx: dot.x.toFixed(1),
        cy: dot.y.toFixed(1),
        r: radius,
        class: `slide-dot ${dot.className}${dot.hollow ? " hollow" : ""}`,
        role: open ? "button" : "img",
        tabindex: -1,
        "aria-label": dot.label,
        "data-slide": dot.id,
      },
      s("title", {}, dot.label),
    ),
  );
  group.append(...drawn);
  if (!open || !drawn.length) return group;
  drawn[0].setAttribute("tabindex", "0");
  let at = 0;
  const focus = (next: number) => {
    drawn[at].setAttribute("tabindex", "-1");
    at = next;
    drawn[at].setAttribute("tabindex", "0");
    drawn[at].focus();
  };
  group.addEventListener("click", (event) => {
    const found = drawn.indexOf(event.target as SVGCircleElement);
    if (found >= 0) open(dots[found].id);
  });
  group.addEventListener("keydown", (event) => {
    const steps: Record<string, number> = {
      ArrowRight: at + 1,
      ArrowDown: at + 1,
      ArrowLeft: at - 1,
      ArrowUp: at - 1,
      Home: 0,
      End: drawn.length - 1,
    };
    if (event.key === "Enter" || event.key === " ") open(dots[at].id);
    else if (event.key in steps) focus((steps[event.key] + drawn.length) % drawn.length);
    else return;
    event.preventDefault();
  });
  return group;
}
