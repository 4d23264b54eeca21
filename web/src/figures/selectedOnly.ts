/** Figure: AUC when only the selected tiles are kept. */

import { barLegend, drawBars } from "../charts/bars";
import { table } from "../page/dom";
import { fixed } from "../page/format";
import { figure } from "./figure";
import type { Scene } from "./scene";

export function selectedOnlyFigure(scene: Scene): HTMLElement | null {
  const { payload } = scene;
  const measured = scene.rankings.filter((name) => scene.numbers(name).selected_only?.auc != null);
  if (!measured.length) return null;
  const only = (name: string) => scene.numbers(name).selected_only!;
  const k = only(measured[0]).k;
  const kinds = [
    { name: `K = ${k}`, value: (name: string) => only(name).auc },
    { name: "K = max(16, 3% of N)", value: (name: string) => only(name).adaptive_auc },
  ].filter((kind) => measured.some((name) => kind.value(name) !== null));
  const lowest = Math.min(
    ...measured.flatMap((name) => kinds.map((kind) => kind.value(name) ?? 1)),
    payload.full_auc ?? 1,
  );
  return figure({
    title: "Only the selected tiles kept",
    caption:
      "AUC against the labels when nothing but the first K tiles is kept. A ranking that is no better than random here has not found anything special.",
    body: [
      barLegend(measured, scene.ink),
      drawBars({
        groups: kinds.map((kind) => ({
          name: kind.name,
          bars: measured.map((name) => ({
            ink: scene.ink(name),
            value: kind.value(name),
            label: `${name}, ${kind.name}: ${fixed(kind.value(name))}`,
          })),
        })),
        range: [lowest >= 0.5 ? 0.5 : 0, 1],
        xLabel: "tiles kept",
        yLabel: "AUC (label)",
        yText: (value) => fixed(value, 2),
        description: "Bars of the AUC with only the selected tiles",
        level:
          payload.full_auc === null
            ? undefined
            : { y: payload.full_auc, label: `all ${fixed(payload.full_auc, 2)}` },
        values: true,
      }),
    ],
    numbers: table(
      ["ranking", ...kinds.map((kind) => kind.name)],
      measured.map((name) => [name, ...kinds.map((kind) => fixed(kind.value(name)))]),
    ),
  });
}
