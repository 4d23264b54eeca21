/** Screen of one slide: two rankings on the tissue, their curves, and one slider for both. */

import { h } from "../../page/dom";
import { fixed } from "../../page/format";
import { colourBar } from "../../tiles/colourBar";
import type { OpenSlide } from "../openSlide";
import { pairCurves } from "../parts/curves";
import { kControl } from "../parts/kControl";
import { slideBar } from "../parts/slideBar";
import { stagePair } from "../parts/stagePair";
import { pairOf, type ScreenView, type Session, startIndex } from "../session";
import { revealPainter } from "../tissue/painters";

export function slideScreen(session: Session, slide: OpenSlide): ScreenView {
  const { data } = slide;
  const pair = pairOf(session, slide);
  const kMax = Math.max(session.cohort.audit.k_max, data.ks[data.ks.length - 1]);
  const stages = stagePair(session, slide, [
    `Ranking A, ${pair[0]}, on the slide`,
    `Ranking B, ${pair[1]}, on the slide`,
  ]);
  const curves = pairCurves(session.cohort, slide, pair, (k) =>
    control.set(data.ks.findLastIndex((one) => one <= k)),
  );
  const overlap = h("p", { class: "read", id: "overlap", role: "status" });
  const start = startIndex(session, slide, pair);

  const show = (index: number) => {
    const k = data.ks[index];
    for (const [i, stage] of stages.stages.entries()) {
      stage.setPainter(revealPainter(pair[i], k, kMax));
      stages.heads[i].replaceChildren(...heading(slide, pair[i], "AB"[i], index, kMax));
    }
    curves.setCursor(k);
    overlap.textContent = sharedText(slide, pair, k, index);
  };
  const control = kControl(data.ks, start, curves.edges, show, (index) =>
    session.remember({ k: data.ks[index] }),
  );
  show(start);
  const [legend, plot] = curves.chart.body;
  return {
    element: h(
      "div",
      { class: "screen slide-screen" },
      slideBar(session, slide),
      data.placed ? null : h("p", { class: "note" }, NOT_PLACED),
      stages.element,
      h("div", { class: "curve-box" }, legend, plot, control.element, overlap),
      colourBar(kMax),
    ),
    key: control.key,
    close() {
      control.stop();
      stages.close();
    },
  };
}

const NOT_PLACED =
  "This slide has no coordinates: its tiles are drawn on a plain grid, in bag order.";

/** Name of a ranking, p from its first tiles, p without them, and where it gets to κ. */
function heading(
  slide: OpenSlide,
  column: string,
  letter: string,
  index: number,
  kMax: number,
): Node[] {
  const { data } = slide;
  const k = data.ks[index];
  const msk = data.msk[column];
  const [steady, lost] = [data.stable[column], data.fallsBack[column]];
  const deleted = slide.deletions[column];
  const at = deleted?.ks.indexOf(k) ?? -1;
  const reached =
    msk === null
      ? `κ never reached within ${kMax}`
      : lost === null
        ? `κ at K = ${msk}, and stays`
        : `κ at K = ${msk}, falls back at ${lost}${steady === null ? "" : `, stays from ${steady}`}`;
  return [
    h("span", { class: `letter letter-${letter.toLowerCase()}` }, letter),
    h("strong", {}, column),
    h("span", {}, `p = ${fixed(data.curve[column][index])}`),
    h("span", { class: "soft" }, at >= 0 ? `without them ${fixed(deleted!.p[at])}` : ""),
    h("span", { class: "soft" }, reached),
  ];
}

function sharedText(slide: OpenSlide, [a, b]: [string, string], k: number, index: number): string {
  const { data, ranks } = slide;
  const end = Math.min(k, data.n);
  let shared = 0;
  for (let i = 0; i < end; i++) if (ranks[b][data.order[a][i]] <= end) shared++;
  const parts = [`${shared} of the first ${end} tiles are the same in A and B`];
  if (data.random) {
    const [low, mean, high] = (["low", "mean", "high"] as const).map((name) =>
      fixed(data.random![name][index], 2),
    );
    parts.push(`random order p = ${mean} (${low} to ${high})`);
  }
  return parts.join(" · ");
}
