/** Figure: on how many slides the first K tiles carry the decision, beside the proven optimum. */

import { unionOfCounts } from "../charts/align";
import { MINIMUM } from "../charts/ink";
import { chartOf } from "../charts/lineChart";
import type { Line } from "../charts/lines";
import { powersOfTwo } from "../charts/ticks";
import { table } from "../page/dom";
import { percent } from "../page/format";
import { figure } from "./figure";
import type { Scene } from "./scene";
import { carriedSlides, cumulative } from "./slideCounts";

export function carriedFigure(scene: Scene): HTMLElement | null {
  const { payload, rankings: every, view } = scene;
  const measures = payload.slides.measures.prediction!;
  const rankings = every.filter((name) => measures[name].found.some((share) => share !== null));
  const slides = carriedSlides(payload, rankings);
  if (view !== "prediction" || !rankings.length || !slides.length) return null;
  const { k_star: least, proof } = payload.slides;
  const counted = (name: string) =>
    slides.map((i) => ({
      count: measures[name].decisive[i],
      weight: measures[name].found[i] ?? 0,
    }));
  const ks = unionOfCounts([
    [1, payload.k_max],
    powersOfTwo(payload.k_max),
    ...rankings.map((name) => slides.map((i) => Math.ceil(measures[name].decisive[i] ?? 1))),
    slides.map((i) => least[i] ?? 1),
  ]).filter((k) => k <= payload.k_max);
  const lines: Line[] = rankings.map((name) => ({
    name,
    ink: scene.ink(name),
    y: cumulative(counted(name), ks),
  }));
  const known = slides.every((i) => proof[i] !== null && proof[i] !== "no bound");
  if (known) {
    const optimum = slides.map((i) => ({ count: least[i], weight: 1 }));
    lines.push({ name: "proven optimum", ink: MINIMUM, y: cumulative(optimum, ks) });
  }
  const chart = chartOf(
    {
      xLabel: "first tiles, K",
      yLabel: "share of slides that they decide",
      x: ks,
      lines,
      yRange: [0, 1],
      stepped: true,
      logX: true,
      description: `Share of slides whose decision the first K tiles carry, under ${rankings.join(", ")}`,
    },
    "K",
  );
  const none = slides.filter((i) => proof[i] === "none, proven").length;
  const proven = known
    ? " Thin line: proven, no order can lie above it." +
      (none ? ` On ${none} of them no set of tiles decides, proven.` : "")
    : "";
  return figure({
    title: "Whose decision do the first K tiles carry?",
    caption:
      "Alone the first K tiles give the decision, and without them it changes. " +
      `n = ${slides.length} decided slides of two tiles or more, mean over seeds.${proven}`,
    controls: [chart.logX],
    body: chart.body,
    numbers: table(
      ["K", ...lines.map((line) => line.name)],
      powersOfTwo(payload.k_max).map((k) => [
        k,
        ...lines.map((line) => percent(line.y[ks.indexOf(k)])),
      ]),
    ),
  });
}
