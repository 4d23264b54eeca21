/** What is on the screen, as a deep link: screen, slide, K, two rankings, and the part in view. */

import { formatLink, type Link, parseLink } from "../page/link";

export const SCREENS = ["slides", "slide", "study"] as const;
export type Screen = (typeof SCREENS)[number];

/** Centre and zoom of the slides, in widths of the slide. */
export interface Viewport {
  x: number;
  y: number;
  zoom: number;
}

export interface State extends Link {
  screen: Screen;
  viewport: Viewport | null;
}

export function parseState(hash: string): State {
  const values = new URLSearchParams(hash.replace(/^#/, ""));
  const link = parseLink(hash);
  const named = SCREENS.find((name) => name === values.get("screen"));
  const numbers = ["x", "y", "zoom"].map((name) => Number.parseFloat(values.get(name) ?? ""));
  const [x, y, zoom] = numbers;
  return {
    ...link,
    screen: named ?? (link.slide === null ? "slides" : "slide"),
    viewport: numbers.every(Number.isFinite) && zoom > 0 ? { x, y, zoom } : null,
  };
}

export function formatState({ screen, viewport, ...link }: State): string {
  const values = new URLSearchParams(formatLink(link).slice(1));
  values.set("screen", screen);
  for (const [name, value] of Object.entries(viewport ?? {})) values.set(name, value.toFixed(4));
  return `#${values}`;
}
