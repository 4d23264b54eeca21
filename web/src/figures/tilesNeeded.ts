/** Figures: how many tiles slides need, a dot per slide, and as a Kaplan-Meier curve. */

import { heldOnAxis, unionOfCounts } from "../charts/align";
import { chartOf } from "../charts/lineChart";
import type { Line } from "../charts/lines";
import { powersOfTwo } from "../charts/ticks";
import { stripPlot } from "../dots/stripPlot";
import { table } from "../page/dom";
import { between, fixed, quantile } from "../page/format";
import type { CountQuartiles } from "../page/payload";
import { figure } from "./figure";
import { cohortOf, ofTarget, type Scene, shadedOf } from "./scene";
import { drawnNote, laneOf, measuredSlides, type SlideCount } from "./slideCounts";

/** Every slide under every ranking; `which` says what is counted. */
export function stripFigure(
  scene: Scene,
  which: SlideCount,
  open: (index: number) => void,
): HTMLElement | null {
  const { payload, rankings } = scene;
  const lanes = rankings.flatMap((name) => laneOf(scene, name, which) ?? []);
  if (!lanes.length) return null;
  const decided = rankings.map((name) => scene.numbers(name).decided);
  const quartiles = (i: number): CountQuartiles | null =>
    (which === "decisive" ? decided[i]?.decisive : decided[i]?.msk) ?? null;
  const shown = (end: "low" | "median" | "high", i: number) =>
    quantile(quartiles(i)?.[end], payload.k_max);
  const n = measuredSlides(payload, scene.view, lanes[0].name, which).length;
  const rule =
    which === "decisive"
      ? "The first K tiles suffice, and without them the model decides otherwise; none: no such K up to the budget."
      : `Tiles after which the model says ${ofTarget(scene.view)} with at least κ = ${payload.kappa}; never: not within ${payload.k_max}.`;
  return figure({
    title: which === "decisive" ? "Tiles the decision hangs on" : "Tiles needed",
    caption:
      `${rule} A dot is a slide (mean over seeds): n = ${n}.${drawnNote(n)} Hollow: the model has not decided the slide. ` +
      (scene.view === "prediction"
        ? "Line and bracket: median and quartiles over decided slides and seeds. Pick a dot to open its slide."
        : "Pick a dot to open its slide."),
    body: [
      stripPlot({
        lanes,
        kMax: payload.k_max,
        xLabel: which === "decisive" ? "decisive K (tiles)" : "tiles needed, K",
        lane: which === "decisive" ? "none" : "never",
        description:
          which === "decisive" ? "Decisive K of every slide" : "Tiles needed by every slide",
        open,
      }),
    ],
    numbers:
      scene.view === "prediction"
        ? table(
            ["ranking", "median", "quartiles", "decided slides"],
            rankings.flatMap((name, i) =>
              quartiles(i) === null
                ? []
                : [
                    [
                      name,
                      shown("median", i),
                      `${shown("low", i)} to ${shown("high", i)}`,
                      decided[i]!.n_slides,
                    ],
                  ],
            ),
          )
        : undefined,
    wide: true,
  });
}

export function survivalFigure(scene: Scene): HTMLElement {
  const { payload, rankings } = scene;
  const steps = unionOfCounts([
    [1, payload.k_max],
    ...rankings.map((name) => scene.numbers(name).km.ks),
  ]).filter((k) => k >= 1);
  const held = (name: string, end: "survival" | "low" | "high", axis: number[]) => {
    const km = scene.numbers(name).km;
    return heldOnAxis(axis, km.ks, km[end] as number[]);
  };
  const lines: Line[] = rankings.map((name) => ({
    name,
    ink: scene.ink(name),
    y: held(name, "survival", steps),
    band: { low: held(name, "low", steps), high: held(name, "high", steps) },
  }));
  const chart = chartOf(
    {
      xLabel: "tiles revealed, K",
      yLabel: "share of slides that need more than K",
      x: steps,
      lines,
      yRange: [0, 1],
      stepped: true,
      logX: true,
      description: `Kaplan-Meier curves over K of ${rankings.join(", ")}`,
    },
    "K",
  );
  const counts = powersOfTwo(payload.k_max);
  return figure({
    title: "Who still needs more tiles?",
    caption: `Kaplan-Meier curve over K, all seeds pooled; the area under it is the restricted mean. Slides that never get to κ are censored at ${payload.k_max}. ${shadedOf(scene, (numbers) => numbers.km)}${cohortOf(scene)}`,
    controls: [chart.logX],
    body: chart.body,
    numbers: table(
      ["K", ...rankings],
      counts.map((k) => [
        k,
        ...rankings.map(
          (name) =>
            fixed(held(name, "survival", [k])[0]) +
            between(held(name, "low", [k])[0], held(name, "high", [k])[0], 3),
        ),
      ]),
    ),
  });
}
