/** The data of a page. Its types are generated from the models of foci.reports.data.models. */

import type { AuditPayload, Payload, RandomBand } from "./types.generated";

export type * from "./types.generated";
export type View = AuditPayload["first_view"];

/** Bits per number, count of numbers, and the numbers in base64. */
export type Packed = RandomBand["mean"];

export function readPayload(): Payload {
  return JSON.parse(document.getElementById("foci-data")!.textContent!) as Payload;
}
