/** Figures: how many tiles slides need, as a histogram and as a Kaplan-Meier curve. */

import { heldOnAxis, unionOfCounts } from "../charts/align";
import { barLegend, drawBars } from "../charts/bars";
import { chartOf } from "../charts/lineChart";
import type { Line } from "../charts/lines";
import { powersOfTwo } from "../charts/ticks";
import { table } from "../page/dom";
import { fixed, percent } from "../page/format";
import { binName, binTick, doublingBins } from "./doublingBins";
import { figure } from "./figure";
import { ofTarget, type Scene } from "./scene";

export function histogramFigure(scene: Scene): HTMLElement {
  const { payload, rankings } = scene;
  const counted = rankings.map((name) =>
    doublingBins(scene.numbers(name).km.ks, scene.numbers(name).km.survival, payload.k_max),
  );
  const names = [...counted[0].bins.map(binName), "never"];
  const ticks = [...counted[0].bins.map(binTick), "never"];
  const shares = counted.map(({ bins, never }) => [...bins.map((bin) => bin.share), never]);
  const highest = Math.max(...shares.flat(), 0.1);
  const groups = names.map((name, g) => ({
    name: ticks[g],
    bars: rankings.map((ranking, i) => ({
      ink: scene.ink(ranking),
      value: shares[i][g],
      label: `${ranking}, ${name} tiles: ${percent(shares[i][g])}`,
    })),
  }));
  return figure({
    title: "How many tiles matter?",
    caption: `Share of slides by the number of tiles after which the model says ${ofTarget(scene.view)} with at least κ = ${payload.kappa}; bins double.`,
    body: [
      barLegend(rankings, scene.ink),
      drawBars({
        groups,
        range: [0, Math.min(1, Math.ceil(highest * 5) / 5)],
        xLabel: "tiles needed (MSK)",
        yLabel: "share of slides (%)",
        yText: (value) => fixed(100 * value, 0),
        description: `Histogram of the tiles needed, by ranking`,
      }),
    ],
    numbers: table(
      ["tiles", ...rankings],
      names.map((name, g) => [name, ...shares.map((share) => percent(share[g]))]),
    ),
  });
}

export function survivalFigure(scene: Scene): HTMLElement {
  const { payload, rankings } = scene;
  const steps = unionOfCounts([
    [1, payload.k_max],
    ...rankings.map((name) => scene.numbers(name).km.ks),
  ]).filter((k) => k >= 1);
  const lines: Line[] = rankings.map((name) => {
    const { ks, survival } = scene.numbers(name).km;
    return { name, ink: scene.ink(name), y: heldOnAxis(steps, ks, survival) };
  });
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
  const counts = [...powersOfTwo(payload.k_max)];
  return figure({
    title: "Who still needs more tiles?",
    caption: `Kaplan-Meier curve over K, all seeds pooled; the area under it is the restricted mean. Slides that never reach κ are censored at ${payload.k_max}.`,
    controls: [chart.logX],
    body: chart.body,
    numbers: table(
      ["K", ...rankings],
      counts.map((k) => [
        k,
        ...rankings.map((name) =>
          fixed(heldOnAxis([k], scene.numbers(name).km.ks, scene.numbers(name).km.survival)[0]),
        ),
      ]),
    ),
  });
}
