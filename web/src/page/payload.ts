/** The data of a page. Its types are generated from the models of foci.reports.models. */

import type { AuditPayload, Payload, RandomBand } from "./types.generated";

export type * from "./types.generated";
export type View = AuditPayload["first_view"];

/** Bits per number, count of numbers, and the numbers in base64. */
export type Packed = RandomBand["mean"];

/** JSON, or of a large cohort JSON that is compressed. */
export async function readPayload(): Promise<Payload> {
  const block = document.getElementById("foci-data") as HTMLScriptElement;
  if (block.type === "application/json") return JSON.parse(block.textContent!) as Payload;
  const bytes = Uint8Array.from(atob(block.textContent!), (sign) => sign.charCodeAt(0));
  const whole = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return (await new Response(whole).json()) as Payload;
}
