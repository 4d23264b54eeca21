/** Light and dark theme: the system's preference or the reader's choice; light on paper. */

import { find } from "./dom";

type Theme = "light" | "dark";

const drawings = new Map<Element, () => void>();
const system = matchMedia("(prefers-color-scheme: dark)");
let chosen: Theme | null = null;
let printing = false;

export function theme(): Theme {
  if (printing) return "light";
  return chosen ?? (system.matches ? "dark" : "light");
}

export function onPaper(): boolean {
  return printing;
}

/** Value of a CSS colour variable in the current theme. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Redraw an element whenever the theme changes, for as long as it is on the page. */
export function onTheme(element: Element, draw: () => void): void {
  drawings.set(element, draw);
}

export function startTheme(): void {
  const button = find<HTMLButtonElement>("#theme");
  const apply = () => {
    document.documentElement.dataset.theme = theme();
    if (button) button.textContent = theme() === "dark" ? "Light" : "Dark";
    for (const [element, draw] of drawings) {
      if (element.isConnected) draw();
      else drawings.delete(element);
    }
  };
  button?.addEventListener("click", () => {
    chosen = theme() === "dark" ? "light" : "dark";
    apply();
  });
  system.addEventListener("change", apply);
  for (const [event, state] of [
    ["beforeprint", true],
    ["afterprint", false],
  ] as const) {
    window.addEventListener(event, () => {
      printing = state;
      apply();
    });
  }
  apply();
}
