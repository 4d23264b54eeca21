/** Places of dots that would cover each other: on a spiral, or piled up. */

import type { LogAxis } from "./logAxis";

/** Dots on one spot lie on a spiral around it, so that each can be seen and picked. */
export function spread<D extends { x: number; y: number }>(
  dots: D[],
  radius: number,
  limit = 20,
): D[] {
  const spots = new Map<string, D[]>();
  for (const dot of dots) {
    const key = `${dot.x.toFixed(1)},${dot.y.toFixed(1)}`;
    spots.set(key, [...(spots.get(key) ?? []), dot]);
  }
  return [...spots.values()].flatMap((group) => {
    const step = Math.min(radius * 1.25, limit / Math.sqrt(group.length));
    return group.map((dot, i) => {
      const [angle, reach] = [i * GOLDEN, step * Math.sqrt(i)];
      return { ...dot, x: dot.x + reach * Math.cos(angle), y: dot.y + reach * Math.sin(angle) };
    });
  });
}

const GOLDEN = Math.PI * (3 - Math.sqrt(5));

/** Pile dots of nearly the same count up around the middle of their lane, side by side if many. */
export function pile<D extends { count: number | null }>(
  dots: D[],
  axis: Pick<LogAxis, "at">,
  middle: number,
  tall: number,
  radius: number,
): (D & { x: number; y: number })[] {
  const space = 2 * radius + 0.8;
  const columns = new Map<number, D[]>();
  for (const dot of dots) {
    const at = Math.round(axis.at(dot.count) / space);
    columns.set(at, [...(columns.get(at) ?? []), dot]);
  }
  const rows = Math.max(1, Math.floor(tall / space));
  return [...columns].flatMap(([at, group]) => {
    const wide = Math.min(Math.ceil(group.length / rows), MOST_COLUMNS);
    const high = Math.ceil(group.length / wide);
    const step = Math.min(space, tall / high);
    return group.map((dot, i) => {
      const [column, row] = [i % wide, Math.floor(i / wide)];
      const x = at * space + (column - (wide - 1) / 2) * space;
      return { ...dot, x, y: middle + (row - (high - 1) / 2) * step };
    });
  });
}

/** Wider piles would cover the next count. */
const MOST_COLUMNS = 6;
