/** Positions of axis ticks and line markers. */

/** Powers of two (1, 2, 4, ...) up to a value. */
export function powersOfTwo(last: number): number[] {
  const ticks: number[] = [];
  for (let k = 1; k <= last; k *= 2) ticks.push(k);
  return ticks;
}

/** Ticks at the first count and in steps of 1, 2 or 5 times a power of ten, one per 80 pixels. */
export function linearTicks(first: number, last: number, width: number): number[] {
  const step = niceStep(last - first, Math.max(2, Math.floor(width / 80)));
  const ticks = first >= 1 ? [first] : [];
  for (let k = Math.ceil(first / step) * step; k <= last; k += step) {
    if (k === 0 || k - first >= step / 2) ticks.push(k);
  }
  return ticks;
}

/** The smallest whole step (1, 2 or 5 times a power of ten) with at most `parts` in a span. */
export function niceStep(span: number, parts: number): number {
  const raw = Math.max(span, 1) / parts;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((m) => m * power >= raw)! * power;
  return Math.max(1, step);
}

/** Round ticks for any span, in fractions if needed. */
export function scaleTicks(low: number, high: number, parts: number): number[] {
  const raw = (high - low || 1) / parts;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((m) => m * power >= raw - 1e-12)! * power;
  const ticks: number[] = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++)
    ticks.push(+(i * step).toPrecision(12));
  return ticks;
}

/** Indices of points that get a marker: doublings on a log axis, even steps otherwise. */
export function markerIndices(x: number[], log: boolean): number[] {
  if (x.length <= 12) return x.map((_, i) => i);
  const wanted = log
    ? powersOfTwo(x[x.length - 1])
    : Array.from({ length: 9 }, (_, i) => x[0] + ((x[x.length - 1] - x[0]) * i) / 8);
  const indices = wanted.map((k) => x.findIndex((value) => value >= k));
  return [...new Set(indices.filter((i) => i >= 0))];
}
