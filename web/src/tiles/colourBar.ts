/** Colour bar of the tile maps: rank on a log scale. */

import { powersOfTwo } from "../charts/ticks";
import { h, s } from "../page/dom";
import { onTheme, theme } from "../page/theme";
import { rankColour } from "./rankColours";

const WIDTH = 260;
const STEPS = 65;
const EDGE = 14;

/** `onTissue`: there a tile that is not revealed has no outline. */
export function colourBar(kMax: number, onTissue: boolean): HTMLElement {
  const svg = s("svg", {
    viewBox: `0 0 ${WIDTH + 2 * EDGE} 40`,
    class: "colour-bar",
    "shape-rendering": "crispEdges",
    role: "img",
    "aria-label": `Colour by rank, from 1 to ${kMax}`,
  });
  const boxes = Array.from({ length: STEPS }, (_, i) =>
    s("rect", { x: EDGE + (i * WIDTH) / STEPS, y: 0, width: WIDTH / STEPS, height: 11 }),
  );
  const paint = () => {
    for (const [i, box] of boxes.entries())
      box.setAttribute("fill", rankColour(kMax ** ((i + 0.5) / STEPS), kMax, theme() === "dark"));
  };
  paint();
  onTheme(svg, paint);
  svg.append(...boxes);
  for (const rank of powersOfTwo(kMax).filter((_, i) => i % 2 === 0)) {
    const x = EDGE + (WIDTH * Math.log(rank)) / Math.log(Math.max(kMax, 2));
    svg.append(s("text", { x, y: 23, class: "tick middle" }, rank));
  }
  svg.append(
    s(
      "text",
      { x: EDGE + WIDTH / 2, y: 37, class: "label middle" },
      "rank in the reveal order (1 = first)",
    ),
  );
  return h(
    "div",
    { class: "colour-legend" },
    svg,
    h(
      "p",
      {},
      onTissue ? "Outline: revealed. " : "Grey: not revealed. ",
      "Dot: revealed in both. Ring: the tile revealed last.",
    ),
  );
}
