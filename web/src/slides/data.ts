/** Curves, orders and tile positions of one slide, unpacked when it is opened. */

import type { AuditPayload, SlideDetail, View } from "../page/payload";
import { unpack, unpackProbabilities } from "../page/unpack";
import { gridCorners, type Corners } from "../tiles/tileLayout";
import { type Tissue, tissueOf } from "../tiles/tissue";
import type { Removed } from "./curves";

export interface SlideData {
  detail: SlideDetail;
  n: number;
  ks: number[];
  columns: string[];
  curve: Record<string, number[]>;
  random: { low: number[]; mean: number[]; high: number[] } | null;
  /** Probability of the target with all tiles. */
  full: number;
  msk: Record<string, number | null>;
  stable: Record<string, number | null>;
  fallsBack: Record<string, number | null>;
  /** Without the first tiles, of the orders that the page compares. */
  removed: Record<string, Removed>;
  order: Record<string, Uint32Array>;
  /** Rank by tile (1 is first); tiles beyond the stored order are absent. */
  rank: Record<string, Map<number, number>>;
  corners: Corners;
  placed: boolean;
  tissue: Tissue | null;
  /** For example "tile 37, x 1024, y 512 px". */
  name: (tile: number) => string;
}

export function slideData(payload: AuditPayload, index: number, view: View): SlideData {
  const detail = payload.details[String(index)];
  const shown = detail.views[view] ?? detail.views.prediction!;
  const columns = Object.keys(detail.orders);
  const curve = Object.fromEntries(
    columns.map((name) => [name, unpackProbabilities(shown.curves[name])]),
  );
  const order = Object.fromEntries(columns.map((name) => [name, unpack(detail.orders[name])]));
  const rank = Object.fromEntries(
    columns.map((name) => [name, new Map(Array.from(order[name], (tile, i) => [tile, i + 1]))]),
  );
  const n = payload.slides.n[index];
  const length = curve[columns[0]].length;
  const { placement } = detail;
  const x = placement && unpack(placement.x);
  const y = placement && unpack(placement.y);
  const files = detail.tiles && unpack(detail.tiles);
  return {
    detail,
    n,
    ks: detail.ks ?? payload.ks.slice(0, length),
    columns,
    curve,
    random: shown.random && {
      low: unpackProbabilities(shown.random.low),
      mean: unpackProbabilities(shown.random.mean),
      high: unpackProbabilities(shown.random.high),
    },
    full: shown.full,
    msk: shown.msk,
    stable: shown.stable,
    fallsBack: shown.falls_back,
    removed: Object.fromEntries(
      Object.entries(detail.removed).map(([name, { ks, p, flip }]) => {
        const probabilities = unpackProbabilities(p);
        const counts = ks ? Array.from(unpack(ks)) : probabilities.map((_, i) => i + 1);
        return [name, { ks: counts, p: probabilities, flip }];
      }),
    ),
    order,
    rank,
    corners: placement ? { x: x!, y: y!, side: placement.side / placement.step } : gridCorners(n),
    placed: placement !== null,
    tissue: tissueOf(payload.gallery?.maps[index], placement),
    name: (tile) => {
      const at = placement
        ? `, x ${placement.origin[0] + placement.step * x![tile]}, y ${placement.origin[1] + placement.step * y![tile]} ${detail.unit}${placement.exact ? "" : " (rounded)"}`
        : "";
      return `tile ${files ? files[tile] : tile}${at}`;
    },
  };
}
