/** Unpack integers of any bit width, lowest bit first, as foci.reports.data.packing packs them. */

import type { Packed } from "./payload";

export function unpack([bits, length, base64]: Packed): Uint32Array {
  const text = atob(base64);
  const numbers = new Uint32Array(length);
  let held = 0;
  let ready = 0;
  let next = 0;
  for (let i = 0; i < length; i++) {
    let value = 0;
    for (let done = 0; done < bits;) {
      if (ready === 0) {
        held = text.charCodeAt(next++);
        ready = 8;
      }
      const take = Math.min(bits - done, ready);
      value += (held & ((1 << take) - 1)) * 2 ** done;
      held >>= take;
      ready -= take;
      done += take;
    }
    numbers[i] = value;
  }
  return numbers;
}

/** Unpack probabilities, stored in steps of 1 / (2^bits - 1). */
export function unpackProbabilities(packed: Packed): number[] {
  const top = 2 ** packed[0] - 1;
  return Array.from(unpack(packed), (value) => value / top);
}
