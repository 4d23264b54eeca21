/** One of the two rankings shown side by side: its name, the probability at K, and its tile map. */

import { h } from "../page/dom";
import { fixed } from "../page/format";
import type { SlideData } from "./data";
import { tileMap } from "../tiles/tileMap";

export interface SlideSide {
  element: HTMLElement;
  column(): string;
  /** Show the tiles revealed at a slider step; mark those that the other side reveals too. */
  show(step: number, shared: Set<number>): void;
  /** Ring one tile; null for none. */
  select(tile: number | null): void;
}

export function slideSide(
  id: "left" | "right",
  column: string,
  data: SlideData,
  called: (column: string) => string | null,
  kMax: number,
  changed: () => void,
  picked: (tile: number | null) => void,
): SlideSide {
  const chosen = h(
    "select",
    { id: `ranking-${id}`, "aria-label": `Ranking on the ${id}` },
    ...data.columns.map((name) => {
      const known = called(name);
      return h("option", { value: name }, known === null ? name : `${known} (${name})`);
    }),
  );
  chosen.value = column;
  chosen.addEventListener("change", changed);
  const read = h("p", { class: "read", id: `read-${id}` });
  const map = tileMap(data.corners, data.tissue, kMax, (tile) => tell(data, tile), picked);
  return {
    element: h("div", { id: `side-${id}` }, chosen, read, map.element),
    column: () => chosen.value,
    select: map.select,
    show(step, shared) {
      const name = chosen.value;
      const k = data.ks[step];
      const p = fixed(data.curve[name][step]);
      read.replaceChildren(h("strong", {}, `p = ${p}`), ` · ${countsText(data, name, kMax)}`);
      const said = `${k} of ${data.n} tiles revealed by ${name}, probability ${p}`;
      map.reveal(data.order[name], k, shared, said);
    },
  };
}

/** First and stable count of a ranking on a slide, and where its confidence falls back. */
export function countsText(
  { msk, stable, fallsBack }: Pick<SlideData, "msk" | "stable" | "fallsBack">,
  name: string,
  kMax: number,
): string {
  const [first, stays, lost] = [msk[name], stable[name], fallsBack[name]];
  if (first === null) return `never sure within ${counted(kMax)}`;
  if (lost === null) return `sure from ${counted(first)} on`;
  const then = stays === null ? `not sure at ${kMax}` : `sure for good from ${stays} on`;
  return `first sure at ${counted(first)}, falls back at ${lost}, ${then}`;
}

const counted = (tiles: number) => (tiles === 1 ? "1 tile" : `${tiles} tiles`);

function tell(data: SlideData, tile: number): string {
  const ranks = data.columns.map((name) => {
    const rank = data.rank[name].get(tile);
    return `${name}: ${rank === undefined ? `after ${data.order[name].length}` : `rank ${rank}`}`;
  });
  return [data.name(tile), ...ranks].join("\n");
}
