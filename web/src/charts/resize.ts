/** Redraw a canvas when its width or the screen's resolution changes. */

import { h } from "../page/dom";
import { onPaper } from "../page/theme";

/** An element whose drawing fills its width. */
export function drawnToWidth(name: string, draw: (width: number) => Node): HTMLElement {
  const element = h("div", { class: name });
  onResize(element, () => element.replaceChildren(draw(element.clientWidth)));
  return element;
}

/** Draw once the element is on the page and after every resize or zoom; paper only scales. */
export function onResize(element: Element, draw: () => void): void {
  let width = 0;
  new ResizeObserver(() => {
    if (onPaper() || element.clientWidth === width) return;
    width = element.clientWidth;
    draw();
  }).observe(element);
  onResolution(element, draw);
}

function onResolution(element: Element, draw: () => void): void {
  const changed = () => {
    if (!element.isConnected) return;
    if (!onPaper()) draw();
    onResolution(element, draw);
  };
  // The query matches the present resolution only, so every change needs a new one.
  matchMedia(`(resolution: ${devicePixelRatio}dppx)`).addEventListener("change", changed, {
    once: true,
  });
}
