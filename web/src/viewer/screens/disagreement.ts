/** Screen of the disagreement: who has which tile among its first K, and rank against rank. */

import { svgMarker } from "../../charts/ink";
import { h, s, table } from "../../page/dom";
import { fixed } from "../../page/format";
import type { OpenSlide } from "../openSlide";
import { kControl } from "../parts/kControl";
import { slideBar } from "../parts/slideBar";
import { stagePair } from "../parts/stagePair";
import { pairOf, type ScreenView, type Session, startIndex } from "../session";
import {
  differenceShade,
  differencePainter,
  doublings,
  LOOK,
  MOST,
  PARTS,
  type Part,
  partsOf,
  partsPainter,
} from "../tissue/setPainters";

export function disagreementScreen(session: Session, slide: OpenSlide): ScreenView {
  const { data } = slide;
  const pair = pairOf(session, slide);
  const stages = stagePair(session, slide, [
    `First tiles of ${pair.join(" and ")} on the slide`,
    `Difference of ranks on the slide`,
  ]);
  const [sets, difference] = stages.stages;
  const region = { class: "scroll", tabindex: 0, role: "region", "aria-label": "Shared tiles" };
  const numbers = h("div", region);
  const show = (index: number) => {
    const k = data.ks[index];
    const parts = partsOf(slide, pair, k);
    sets.setPainter(partsPainter(pair, k));
    stages.heads[0].replaceChildren(
      h("strong", {}, `First ${k} of each`),
      ...PARTS.map((part) => legendEntry(part, parts[part].length)),
    );
    numbers.replaceChildren(numbersTable(slide, pair, k, parts));
  };
  const start = startIndex(session, slide, pair, 16);
  const control = kControl(data.ks, start, { left: 9, right: 9 }, show, (index) =>
    session.remember({ k: data.ks[index] }),
  );
  difference.setPainter(differencePainter(pair));
  stages.heads[1].replaceChildren(h("strong", {}, "Rank in A against rank in B"), scale());
  show(start);
  return {
    element: h(
      "div",
      { class: "screen disagreement-screen" },
      slideBar(session, slide),
      pair[0] === pair[1] ? h("p", { class: "note" }, SAME) : null,
      stages.element,
      h("div", { class: "curve-box" }, control.element),
      numbers,
      h("p", { class: "soft" }, EXPLAINED),
    ),
    key: control.key,
    close() {
      control.stop();
      stages.close();
    },
  };
}

const SAME = "A and B are the same ranking: choose another to see where they differ.";
const EXPLAINED =
  "Right: + is a tile that comes earlier in A, − one that comes earlier in B; full colour is a " +
  `factor of ${2 ** MOST} or more between its ranks.`;

function legendEntry(part: Part, count: number): HTMLElement {
  const { marker, shade, name } = LOOK[part];
  const icon = s(
    "svg",
    { width: 18, height: 18, viewBox: "0 0 18 18", "aria-hidden": "true" },
    svgMarker(marker, 9, 9, 6.5, "part-mark"),
  );
  icon.querySelector(".part-mark")!.setAttribute("fill", shade);
  return h("span", { class: "legend-entry", "data-part": part }, icon, `${name} ${count}`);
}

/** Colours of the differences, with words at both ends. */
function scale(): HTMLElement {
  const svg = s("svg", { viewBox: "0 0 120 12", width: 120, height: 12, "aria-hidden": "true" });
  for (let i = 0; i < 24; i++) {
    const value = MOST * (1 - (2 * (i + 0.5)) / 24);
    const fill = `rgb(${differenceShade(value).join(",")})`;
    svg.append(s("rect", { x: i * 5, y: 0, width: 5.2, height: 12, fill }));
  }
  return h("span", { class: "legend-entry" }, "+ earlier in A", svg, "− earlier in B");
}

function numbersTable(
  slide: OpenSlide,
  [a, b]: [string, string],
  k: number,
  parts: Record<Part, number[]>,
): HTMLElement {
  const union = PARTS.reduce((sum, part) => sum + parts[part].length, 0);
  const chance = k / (2 * slide.data.n - k);
  let apart = 0;
  const found = [...parts.a, ...parts.b];
  for (const tile of found)
    apart += Math.abs(doublings(slide.ranks[a][tile], slide.ranks[b][tile]));
  return table(
    [
      "first K tiles",
      "A only",
      "B only",
      "both",
      "Jaccard",
      "by chance",
      "mean factor between ranks",
    ],
    [
      [
        `K = ${k}`,
        parts.a.length,
        parts.b.length,
        parts.both.length,
        fixed(parts.both.length / union, 2),
        fixed(Math.min(chance, 1), 2),
        found.length ? `${fixed(2 ** (apart / found.length), 1)}×` : "–",
      ],
    ],
  );
}
