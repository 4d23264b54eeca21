/** Ask the viewer's server; an error is one line that can be shown in place. */

import type { SlidePyramid, ViewerCohort, ViewerSlide, ViewerStudy } from "./types.generated";

export type { SlidePyramid, ViewerCohort, ViewerSlide };

export class ServerError extends Error {}

async function ask(path: string, options: RequestInit = {}): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new ServerError("The viewer's server does not answer; start foci view again.");
  }
  if (answer.ok) return answer;
  if (answer.status === 403)
    throw new ServerError("This page has no valid token; open the address that foci view prints.");
  const said = await answer.json().catch(() => null);
  throw new ServerError(said?.error ?? `The server answers ${answer.status}.`);
}

export async function askCohort(): Promise<ViewerCohort> {
  return (await ask("api/cohort")).json();
}

export async function askSlide(number: number): Promise<ViewerSlide> {
  return (await ask(`api/slides/${number}`)).json();
}

/** Why the image of a slide cannot be shown; null if it can. */
export async function askTrouble(number: number): Promise<string | null> {
  const said = await (await ask(`api/slides/${number}/image`)).json();
  return said.message as string | null;
}

export async function askStudy(reader: string, first: number): Promise<ViewerStudy> {
  return (await ask(`api/study?${new URLSearchParams({ reader, first: String(first) })}`)).json();
}

export async function sendMark(mark: Record<string, string | number>): Promise<void> {
  await ask("api/marks", { method: "POST", body: JSON.stringify(mark) });
}

/** A file of what is on the screen, as a download of the browser. */
export async function askFile(path: string): Promise<{ name: string; content: Blob }> {
  const answer = await ask(path);
  const said = answer.headers.get("Content-Disposition") ?? "";
  const name = /filename\*=UTF-8''([^;]+)/.exec(said)?.[1] ?? "foci";
  return { name: decodeURIComponent(name), content: await answer.blob() };
}

export const partUrl = (
  number: number,
  { version }: SlidePyramid,
  level: number,
  column: number,
  row: number,
): string => `api/slides/${number}/parts/${level}/${column}_${row}.jpeg?v=${version}`;

export const tileUrl = (number: number, { version }: SlidePyramid, tile: number): string =>
  `api/slides/${number}/tiles/${tile}.jpeg?v=${version}`;

/** The tile 512 pixels wide, amid half a tile on every side. */
export const largeTileUrl = (number: number, tile: number): string =>
  `api/slides/${number}/tiles/${tile}.jpeg?around=1`;

export const thumbnailUrl = (number: number): string => `api/slides/${number}/thumbnail.jpeg`;
