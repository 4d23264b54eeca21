/** Histogram of the tiles needed, from the Kaplan-Meier curve. */

export interface Bin {
  from: number;
  to: number;
  share: number;
}

/**
 * Shares of slides in doubling bins (1, 2, 3-4, 5-8, ...) up to kMax, and the share that never
 * reaches κ. The survival curve is a right-continuous step function that starts at (0, 1).
 */
export function doublingBins(
  ks: number[],
  survival: number[],
  kMax: number,
): { bins: Bin[]; never: number } {
  const at = (k: number) => {
    let value = 1;
    for (let i = 0; i < ks.length && ks[i] <= k; i++) value = survival[i];
    return value;
  };
  const bins: Bin[] = [];
  for (let from = 1, to = 1; from <= kMax; from = to + 1, to = Math.min(2 * to, kMax)) {
    bins.push({ from, to, share: at(from - 1) - at(to) });
    if (to === kMax) break;
  }
  return { bins, never: at(kMax) };
}

export function binName({ from, to }: Bin): string {
  return from === to ? String(from) : `${from} to ${to}`;
}

/** Short name for an axis; the lower end follows from the bin to the left. */
export function binTick({ from, to }: Bin): string {
  return from === to ? String(from) : `≤${to}`;
}
