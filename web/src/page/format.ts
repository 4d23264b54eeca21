/** Format numbers as text; an undefined value is an en dash, never NaN. */

export const NOTHING = "–";

export function fixed(value: number | null | undefined, digits = 3): string {
  if (value == null || !Number.isFinite(value)) return NOTHING;
  const text = value.toFixed(digits);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
}

/** Format a tile count: one decimal, or none if it is whole or at least 100. */
export function tiles(value: number | null | undefined): string {
  if (value == null || !Number.isFinite(value)) return NOTHING;
  const whole = Number.isInteger(value) || Math.abs(value) >= 100;
  return whole ? grouped(Number(value.toFixed(0))) : fixed(value, 1);
}

export function percent(value: number | null | undefined): string {
  if (value == null || !Number.isFinite(value)) return NOTHING;
  return `${fixed(100 * value, 0)}%`;
}

/** A whole number with separators: 13,896. */
export function grouped(count: number): string {
  return count.toLocaleString("en-US");
}

/** A number with its noun: "1 tile", "3 tiles". */
export function counted(count: number, noun: string): string {
  return `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** The ends of an interval in brackets, for a table; nothing where there are none. */
export function between(low: number | null, high: number | null, digits: number): string {
  return low === null || high === null ? "" : ` (${fixed(low, digits)} to ${fixed(high, digits)})`;
}
