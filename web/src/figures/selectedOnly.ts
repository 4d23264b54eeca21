/** Figure: AUC when only the selected tiles are kept. */

import { forest } from "../charts/forest";
import { table } from "../page/dom";
import { fixed } from "../page/format";
import { figure } from "./figure";
import type { Scene } from "./scene";

export function selectedOnlyFigure(scene: Scene): HTMLElement | null {
  const { payload } = scene;
  const measured = scene.rankings.filter((name) => scene.numbers(name).selected_only?.auc != null);
  if (!measured.length) return null;
  const only = (name: string) => scene.numbers(name).selected_only!;
  const { k, n_slides: n } = only(measured[0]);
  const kinds = [
    { name: `first ${k} tiles kept`, value: (name: string) => only(name).auc },
    { name: "max(16, 3% of N) tiles kept", value: (name: string) => only(name).adaptive_auc },
  ].filter((kind) => measured.some((name) => kind.value(name) !== null));
  const values = measured.flatMap((name) => kinds.map((kind) => kind.value(name) ?? 1));
  const lowest = Math.min(...values, payload.full_auc ?? 1);
  const all = payload.full_auc;
  return figure({
    title: "Only the selected tiles kept",
    caption:
      "AUC against the labels when nothing but the first tiles is kept. A ranking that is no better than random here has not found anything special. " +
      `n = ${n ?? payload.slides.id.length} slides; one value per ranking, averaged over its seeds, without an interval.`,
    body: [
      forest({
        groups: kinds.map((kind) => ({
          name: kind.name,
          rows: measured.flatMap((name) => {
            const value = kind.value(name);
            if (value === null) return [];
            const text = fixed(value);
            return [{ name, ink: scene.ink(name), value, low: null, high: null, text }];
          }),
        })),
        range: [lowest >= 0.5 ? 0.5 : 0, 1],
        xLabel: "AUC (label)",
        tick: (value) => fixed(value, 2),
        description: "AUC with only the selected tiles, by ranking",
        level: all === null ? undefined : { x: all, label: `all tiles ${fixed(all)}` },
      }),
    ],
    numbers: table(
      ["ranking", ...kinds.map((kind) => kind.name)],
      measured.map((name) => [name, ...kinds.map((kind) => fixed(kind.value(name)))]),
    ),
  });
}
