/** A bar's look for legends: colour and texture. */

import { s } from "./dom";
import type { Ink } from "./ink";

export function swatch(ink: Ink): SVGSVGElement {
  const box = { x: 1, y: 1, width: 12, height: 10 };
  const svg = s(
    "svg",
    { width: 14, height: 12, viewBox: "0 0 14 12", "aria-hidden": "true" },
    s("rect", { ...box, class: `bar fill-${ink.index}` }),
  );
  const fill = texture(ink);
  if (fill) svg.append(s("rect", { ...box, class: "texture", fill }));
  return svg;
}

/** The pattern laid over a bar; the first ranking has none. */
export function texture(ink: Ink): string | null {
  return ink.index > 0 ? `url(#texture-${Math.min(ink.index, 3)})` : null;
}
