/** Align curves with different tile counts on one axis. */

/** Sorted union of tile counts. */
export function unionOfCounts(lists: number[][]): number[] {
  return [...new Set(lists.flat())].sort((a, b) => a - b);
}

/** Values of a curve on the axis; null at counts where it was not measured. */
export function onAxis(axis: number[], ks: number[], values: (number | null)[]): (number | null)[] {
  const byCount = new Map(ks.map((k, i) => [k, values[i]]));
  return axis.map((k) => byCount.get(k) ?? null);
}

/** Value of a curve at any count, by linear interpolation; constant beyond its ends. */
export function valueAt(ks: number[], values: (number | null)[], k: number): number | null {
  const above = ks.findIndex((value) => value >= k);
  if (above < 0) return values[values.length - 1];
  const right = values[above];
  if (above === 0 || ks[above] === k) return right;
  const left = values[above - 1];
  if (left === null || right === null) return null;
  const share = (k - ks[above - 1]) / (ks[above] - ks[above - 1]);
  return left + share * (right - left);
}
