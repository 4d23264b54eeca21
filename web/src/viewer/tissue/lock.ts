/** Two slides that pan and zoom together. */

import type { Stage } from "./stage";

/** Whatever the reader does to one stage, the other follows in the same frame. */
export function lock(first: Stage, second: Stage, moved: () => void): void {
  let leading: Stage | null = null;
  const follow = (from: Stage, to: Stage) => () => {
    if (leading === to || !to.osd.isOpen() || !from.osd.isOpen()) return;
    leading = from;
    to.osd.viewport.zoomTo(from.osd.viewport.getZoom(), undefined, true);
    to.osd.viewport.panTo(from.osd.viewport.getCenter(), true);
    leading = null;
    moved();
  };
  for (const [from, to] of [
    [first, second],
    [second, first],
  ]) {
    from.osd.addHandler("zoom", follow(from, to));
    from.osd.addHandler("pan", follow(from, to));
    from.osd.addHandler("update-viewport", () => {
      if (from.osd.isOpen() && from.osd.isMouseNavEnabled()) settle(from, to);
    });
  }
  // Springs end between two events: follow the one that the pointer is on until both agree.
  let active: Stage = first;
  for (const one of [first, second]) {
    one.element.addEventListener("pointerenter", () => (active = one));
    one.element.addEventListener("pointerdown", () => (active = one));
    one.element.addEventListener("focusin", () => (active = one));
    one.element.addEventListener("wheel", () => (active = one), { passive: true });
  }
  function settle(from: Stage, to: Stage): void {
    if (from !== active || !to.osd.isOpen()) return;
    const [a, b] = [from.osd.viewport.getCenter(true), to.osd.viewport.getCenter(true)];
    const [z, w] = [from.osd.viewport.getZoom(true), to.osd.viewport.getZoom(true)];
    if (Math.abs(z - w) < 1e-9 * z && Math.abs(a.x - b.x) + Math.abs(a.y - b.y) < 1e-9) return;
    leading = from;
    to.osd.viewport.zoomTo(z, undefined, true);
    to.osd.viewport.panTo(a, true);
    leading = null;
    moved();
  }
}
