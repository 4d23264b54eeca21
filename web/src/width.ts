/** Drawings that follow the width of their element. */

import { onPaper } from "./theme";

/** Called once the element is on the page and whenever its width changes; paper only scales. */
export function onWidth(element: Element, draw: () => void): void {
  let width = 0;
  new ResizeObserver(() => {
    if (onPaper() || element.clientWidth === width) return;
    width = element.clientWidth;
    draw();
  }).observe(element);
}
