/** Positions on a logarithmic axis of tile counts, with a lane beyond it for slides without one. */

import { powersOfTwo } from "../charts/ticks";

export interface LogAxis {
  /** Pixel of a count; null is the lane beyond the axis. */
  at: (count: number | null) => number;
  ticks: { at: number; label: string }[];
}

/** Share of the axis that the lane of slides without a count takes, and its least pixels. */
const LANE = { share: 0.1, least: 40 };

/** From the first pixel (one tile) to the last one, which is the lane if there is one. */
export function logAxis(kMax: number, first: number, last: number, lane: string | null): LogAxis {
  const span = last - first;
  const room = Math.max(LANE.share * Math.abs(span), LANE.least) * Math.sign(span);
  const end = lane === null ? last : last - room;
  const top = Math.log(Math.max(kMax, 2));
  const at = (count: number | null) =>
    count === null ? last : first + ((end - first) * Math.log(Math.max(count, 1))) / top;
  const every = powersOfTwo(kMax);
  // One label per 30 pixels is enough.
  const step = Math.max(1, Math.ceil((every.length * 30) / Math.max(Math.abs(end - first), 1)));
  const ticks = every
    .filter((_, i) => i % step === 0)
    .map((k) => ({ at: at(k), label: String(k) }));
  if (lane !== null) ticks.push({ at: last, label: lane });
  return { at, ticks };
}
