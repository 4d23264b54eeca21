/** Figure: mean reveal curve of each ranking. */

import { onAxis, unionOfCounts, valueAt } from "../charts/align";
import { chartOf } from "../charts/lineChart";
import type { Line } from "../charts/lines";
import { powersOfTwo } from "../charts/ticks";
import { checkbox, table } from "../page/dom";
import { between, fixed } from "../page/format";
import { figure } from "./figure";
import { cohortOf, ofTarget, type Scene } from "./scene";

export function revealFigure(scene: Scene): HTMLElement {
  const { payload, rankings } = scene;
  const axis = unionOfCounts(rankings.map((name) => scene.numbers(name).mean_curve.ks));
  const lines: Line[] = rankings.map((name) => {
    const curve = scene.numbers(name).mean_curve;
    const band = {
      low: onAxis(axis, curve.ks, curve.low),
      high: onAxis(axis, curve.ks, curve.high),
    };
    return {
      name,
      ink: scene.ink(name),
      y: onAxis(axis, curve.ks, curve.mean),
      band: name === "random" ? band : undefined,
    };
  });
  const quartiles = rankings.map((name, i) => {
    const curve = scene.numbers(name).mean_curve;
    return name === "random"
      ? lines[i].band
      : { low: onAxis(axis, curve.ks, curve.low), high: onAxis(axis, curve.ks, curve.high) };
  });
  const marks = rankings.flatMap((name) => {
    const { median_k, mean_curve } = scene.numbers(name);
    if (median_k === null) return [];
    const y = valueAt(mean_curve.ks, mean_curve.mean, median_k);
    return y === null ? [] : [{ x: median_k, y, ink: scene.ink(name) }];
  });
  const spec = {
    xLabel: "tiles revealed, K",
    yLabel: `mean probability of ${ofTarget(scene.view)}`,
    x: axis,
    lines,
    marks,
    yRange: [0, 1] as [number, number],
    logX: true,
    levels: [{ y: payload.kappa, label: `κ = ${payload.kappa}` }],
    height: 360,
    description: `Mean reveal curves of ${rankings.join(", ")} over K`,
  };
  const chart = chartOf(spec, "K");
  const spread = checkbox("quartiles over slides", false, (on) => {
    for (const [i, line] of lines.entries())
      line.band = on || line.name === "random" ? quartiles[i] : undefined;
    chart.drawn.draw(spec);
  });
  const counts = axis.filter((k) => powersOfTwo(payload.k_max).includes(k));
  return figure({
    title: "Reveal: how fast does the decision come back?",
    caption:
      `Probability of ${ofTarget(scene.view)} when only the first K tiles of each ranking are shown, averaged over slides. ` +
      `The shaded band spans the random orders; the quartiles over slides can be switched on. Triangles: the count at which half of the slides have got to κ. ${cohortOf(scene)}`,
    controls: [chart.logX, spread],
    body: chart.body,
    numbers: table(
      ["K", ...rankings],
      counts.map((k) => {
        const at = axis.indexOf(k);
        const cell = (line: Line, i: number) => {
          const { low, high } = quartiles[i]!;
          return fixed(line.y[at]) + between(low[at], high[at], 3);
        };
        return [k, ...lines.map(cell)];
      }),
    ),
    wide: true,
  });
}
