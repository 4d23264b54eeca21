/** The number of tiles: a slider on a log scale, its value, and a button that plays. */

import { afterKey, logSlider } from "../../charts/logSlider";
import { h } from "../../page/dom";

export interface KControl {
  element: HTMLElement;
  /** Arrows step, Shift with an arrow doubles, Space plays; true for these keys. */
  key(event: KeyboardEvent): boolean;
  index(): number;
  set(index: number): void;
  stop(): void;
}

const STEP_MS = 140;

export function kControl(
  ks: number[],
  start: number,
  edges: { left: number; right: number },
  move: (index: number) => void,
  settle: (index: number) => void,
): KControl {
  let at = start;
  let timer: ReturnType<typeof setInterval> | null = null;
  const shown = h("output", { id: "k-value", for: "k-slider" });
  const play = h("button", { type: "button", id: "play", title: "Play (Space)" }, "▶ Play");
  const slider = logSlider({
    ks,
    label: "Tiles revealed, K",
    edges,
    move: (index) => {
      stop();
      go(index);
    },
    settle,
  });

  const go = (index: number) => {
    at = Math.min(Math.max(index, 0), ks.length - 1);
    slider.set(at);
    shown.textContent = `K = ${ks[at]}`;
    move(at);
  };
  const stop = () => {
    if (timer === null) return;
    clearInterval(timer);
    timer = null;
    play.textContent = "▶ Play";
    settle(at);
  };
  const toggle = () => {
    if (timer !== null) return stop();
    if (at === ks.length - 1) go(0);
    play.textContent = "❚❚ Pause";
    timer = setInterval(() => {
      if (at >= ks.length - 1 || !play.isConnected) return stop();
      go(at + 1);
    }, STEP_MS);
  };
  play.addEventListener("click", toggle);
  slider.set(at);
  shown.textContent = `K = ${ks[at]}`;
  return {
    element: h(
      "div",
      { class: "k-control" },
      slider.element,
      h("div", { class: "k-read" }, play, shown, h("span", { class: "keys soft" }, KEYS)),
    ),
    key(event) {
      if (event.key === " ") {
        toggle();
        return true;
      }
      const next = afterKey(ks, at, event);
      if (next === null || event.ctrlKey || event.metaKey || event.altKey) return false;
      stop();
      go(next);
      settle(at);
      return true;
    },
    index: () => at,
    set: go,
    stop,
  };
}

const KEYS = "Space plays, ← → step, Shift doubles";
