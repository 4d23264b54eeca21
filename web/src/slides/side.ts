/** One of the two rankings shown side by side: its name, the probability at K, and its tile map. */

import { h } from "../page/dom";
import { fixed } from "../page/format";
import type { SlideData } from "./data";
import { tileMap } from "./tileMap";

export interface SlideSide {
  element: HTMLElement;
  column(): string;
  /** Show the tiles revealed at a slider step; mark those that the other side reveals too. */
  show(step: number, shared: Set<number>): void;
}

export function slideSide(
  id: "left" | "right",
  column: string,
  data: SlideData,
  kMax: number,
  changed: () => void,
): SlideSide {
  const chosen = h(
    "select",
    { id: `ranking-${id}`, "aria-label": `Ranking on the ${id}` },
    ...data.columns.map((name) => h("option", { value: name }, name)),
  );
  chosen.value = column;
  chosen.addEventListener("change", changed);
  const read = h("p", { class: "read", id: `read-${id}` });
  const map = tileMap(data.corners, data.tissue, kMax, (tile) => tell(data, tile));
  return {
    element: h("div", { id: `side-${id}` }, chosen, read, map.element),
    column: () => chosen.value,
    show(step, shared) {
      const name = chosen.value;
      const k = data.ks[step];
      const p = fixed(data.curve[name][step]);
      const msk = data.msk[name];
      const count = msk === null ? `κ never reached within ${kMax}` : `MSK ${msk}`;
      read.replaceChildren(h("strong", {}, `p = ${p}`), ` · ${count}`);
      const said = `${k} of ${data.n} tiles revealed by ${name}, probability ${p}`;
      map.reveal(data.order[name], k, shared, said);
    },
  };
}

function tell(data: SlideData, tile: number): string {
  const ranks = data.columns.map((name) => {
    const rank = data.rank[name].get(tile);
    return `${name}: ${rank === undefined ? `after ${data.order[name].length}` : `rank ${rank}`}`;
  });
  return [data.name(tile), ...ranks].join("\n");
}
