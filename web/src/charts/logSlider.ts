/** Slider over tile counts on a log scale, aligned with the axis of the chart above it. */

import { h } from "../page/dom";

export interface LogSliderSpec {
  /** Counts that the slider stops at, ascending. */
  ks: number[];
  label: string;
  /** Distances in pixels from the edges of the chart to its plot area. */
  edges: { left: number; right: number };
  /** Called on every move with the index of the count. */
  move: (index: number) => void;
  /** Called when the reader has let go. */
  settle?: (index: number) => void;
}

export interface LogSlider {
  element: HTMLElement;
  input: HTMLInputElement;
  set(index: number): void;
}

/** Width of the thumb in pixels, as in the style sheet. */
const THUMB = 18;

/**
 * Arrows go to the next count, Page Up and Page Down or Shift with an arrow double and halve it,
 * Home and End go to the ends.
 */
export function logSlider({ ks, label, edges, move, settle }: LogSliderSpec): LogSlider {
  const last = ks.length - 1;
  const input = h("input", {
    type: "range",
    id: "k-slider",
    class: "log-slider",
    min: Math.log2(ks[0]),
    max: Math.log2(Math.max(ks[last], ks[0] + 1)),
    step: "any",
    "aria-label": label,
  });
  const element = h("div", { class: "slider" }, input);
  // The middle of the thumb, not its edge, lies on the ends of the axis.
  input.style.marginLeft = `${edges.left - THUMB / 2}px`;
  input.style.width = `calc(100% - ${edges.left + edges.right - THUMB}px)`;
  let at = 0;

  const set = (index: number) => {
    at = Math.min(Math.max(index, 0), last);
    input.value = String(Math.log2(ks[at]));
    input.setAttribute("aria-valuetext", ks[at] === 1 ? "1 tile" : `${ks[at]} tiles`);
  };
  const go = (index: number) => {
    set(index);
    move(at);
  };
  input.addEventListener("input", () => go(nearestInLog(ks, 2 ** Number(input.value))));
  input.addEventListener("change", () => settle?.(at));
  input.addEventListener("keydown", (event) => {
    const next = afterKey(ks, at, event);
    if (next === null) return;
    event.preventDefault();
    go(next);
    settle?.(at);
  });
  set(0);
  return { element, input, set };
}

/** Index of the count that is nearest to a value on a log scale. */
export function nearestInLog(ks: number[], value: number): number {
  let best = 0;
  for (const [i, k] of ks.entries())
    if (Math.abs(Math.log(k / value)) < Math.abs(Math.log(ks[best] / value))) best = i;
  return best;
}

/** Index of the count that a key goes to; null for keys that do not move a slider. */
export function afterKey(
  ks: number[],
  at: number,
  { key, shiftKey }: Pick<KeyboardEvent, "key" | "shiftKey">,
): number | null {
  const last = ks.length - 1;
  const doubled = () => {
    const found = ks.findIndex((k) => k >= 2 * ks[at]);
    return found < 0 ? last : found;
  };
  const halved = () =>
    Math.max(
      ks.findLastIndex((k) => k <= ks[at] / 2),
      0,
    );
  switch (key) {
    case "ArrowRight":
    case "ArrowUp":
      return shiftKey ? doubled() : Math.min(at + 1, last);
    case "ArrowLeft":
    case "ArrowDown":
      return shiftKey ? halved() : Math.max(at - 1, 0);
    case "PageUp":
      return doubled();
    case "PageDown":
      return halved();
    case "Home":
      return 0;
    case "End":
      return last;
    default:
      return null;
  }
}
