/** Figure: mean deletion curve of each ranking. */

import { onAxis, unionOfCounts } from "../charts/align";
import { chartOf } from "../charts/lineChart";
import type { Line } from "../charts/lines";
import { table } from "../page/dom";
import { fixed } from "../page/format";
import { figure } from "./figure";
import { ofTarget, type Scene } from "./scene";

export function deletionFigure(scene: Scene): HTMLElement {
  const { rankings } = scene;
  const axis = unionOfCounts(rankings.map((name) => scene.numbers(name).drops.ks));
  const lines: Line[] = rankings.map((name) => {
    const { ks, mean } = scene.numbers(name).drops;
    return { name, ink: scene.ink(name), y: onAxis(axis, ks, mean) };
  });
  const values = lines.flatMap((line) => line.y.filter((v): v is number => v !== null));
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
  return figure({
    title: "Deletion: are the first tiles load-bearing?",
    caption: `Loss of the probability of ${ofTarget(scene.view)} when the first K tiles of each ranking are removed from the full bag. 0: the model does not miss them.`,
    controls: [chart.logX],
    body: chart.body,
    numbers: table(
      ["K", ...rankings],
      axis.map((k, i) => [k, ...lines.map((line) => fixed(line.y[i]))]),
    ),
  });
}
