/** Figure: mean deletion curve of each ranking. */

import { onAxis, unionOfCounts } from "../charts/align";
import { chartOf } from "../charts/lineChart";
import type { Line } from "../charts/lines";
import { table } from "../page/dom";
import { between, fixed } from "../page/format";
import { figure } from "./figure";
import { ofTarget, type Scene, shadedOf } from "./scene";

export function deletionFigure(scene: Scene): HTMLElement {
  const { rankings } = scene;
  const drops = rankings.map((name) => scene.numbers(name).drops);
  const axis = unionOfCounts(drops.map(({ ks }) => ks));
  const lines: Line[] = rankings.map((name, i) => {
    const { ks, mean, low, high } = drops[i];
    const band = { low: onAxis(axis, ks, low), high: onAxis(axis, ks, high) };
    return { name, ink: scene.ink(name), y: onAxis(axis, ks, mean), band };
  });
  const values = lines
    .flatMap(({ y, band }) => [...y, ...band!.low, ...band!.high])
    .filter((v): v is number => v !== null);
  const top = Math.max(0.1, Math.ceil(Math.max(...values) * 10) / 10);
  const bottom = Math.min(0, Math.floor(Math.min(...values) * 10) / 10);
  const chart = chartOf(
    {
      xLabel: "tiles deleted, K",
      yLabel: "mean drop in probability",
      x: axis,
      lines,
      yRange: [bottom, top],
      logX: true,
      description: `Deletion curves of ${rankings.join(", ")}`,
    },
    "K",
  );
  const slides = axis.map((k) => Math.max(...drops.map((d) => d.n_slides[d.ks.indexOf(k)] ?? 0)));
  return figure({
    title: "Deletion: are the first tiles load-bearing?",
    caption:
      `Loss of the probability of ${ofTarget(scene.view)} when the first K tiles of each ranking are removed from the slide. 0: the model does not miss them. ` +
      `${shadedOf(scene, (numbers) => numbers.drops)}n = ${Math.max(...slides)} slides at K = ${axis[0]}, ${slides[slides.length - 1]} at K = ${axis[axis.length - 1]}: those that have more tiles.`,
    controls: [chart.logX],
    body: chart.body,
    numbers: table(
      ["K", ...rankings, "slides"],
      axis.map((k, i) => [
        k,
        ...lines.map(({ y, band }) => fixed(y[i]) + between(band!.low[i], band!.high[i], 3)),
        slides[i],
      ]),
    ),
  });
}
