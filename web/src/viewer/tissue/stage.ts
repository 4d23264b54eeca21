/** One slide in OpenSeadragon with a canvas of tiles above it; a plain lattice without an image. */

import OpenSeadragon from "openseadragon";
import { h } from "../../page/dom";
import { onTheme } from "../../page/theme";
import type { OpenSlide } from "../openSlide";
import { askTrouble } from "../server";
import type { Viewport } from "../state";
import { drawRing, pointing } from "./pointing";
import { drawScaleBar } from "./scaleBar";
import { tileSource } from "./source";

/** The screen's place of a slide: pixels per width of the slide, and where its corner lies. */
export interface Place {
  scale: number;
  x: number;
  y: number;
  width: number;
  height: number;
  /** Pixels of the canvas per pixel of the page. */
  ratio: number;
}

/** Draws tiles; called whenever the slide moves or something on it changes. */
export type Painter = (context: CanvasRenderingContext2D, place: Place, slide: OpenSlide) => void;

export interface Stage {
  element: HTMLElement;
  osd: OpenSeadragon.Viewer;
  slide: OpenSlide;
  setPainter(painter: Painter): void;
  repaint(): void;
  /** Ring around one tile, linked to what the reader points at elsewhere. */
  highlight(tile: number | null): void;
  centre(tile: number): void;
  place(): Place | null;
  viewport(): Viewport | null;
  setViewport(viewport: Viewport): void;
  onHover(hover: (tile: number | null) => void): void;
  close(): void;
}

/** Pixels that the buttons take from the right edge: a slide fits beside them. */
const BUTTONS = 44;

export function stage(slide: OpenSlide, label: string, first: Viewport | null): Stage {
  const holder = h("div", { class: "osd" });
  const canvas = h("canvas", { class: "over", "aria-hidden": "true" });
  const trouble = h("p", { class: "trouble", role: "alert", hidden: true });
  const element = h("div", { class: "stage" }, holder, canvas, trouble, buttons());
  const osd = OpenSeadragon({
    element: holder,
    drawer: "canvas",
    showNavigationControl: false,
    tileSources: [tileSource(slide) as never],
    animationTime: matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 0.6,
    springStiffness: 9,
    maxZoomPixelRatio: 4,
    visibilityRatio: 0.3,
    minZoomImageRatio: 0.6,
    gestureSettingsMouse: { clickToZoom: false, dblClickToZoom: true },
    immediateRender: false,
    imageLoaderLimit: 6,
    showNavigator: slide.pyramid !== null,
    navigatorPosition: "BOTTOM_RIGHT",
    navigatorSizeRatio: 0.18,
    navigatorAutoFade: false,
    viewportMargins: { right: BUTTONS },
  });
  osd.canvas.setAttribute("aria-label", label);
  osd.canvas.setAttribute("role", "application");
  let painter: Painter = () => {};
  let marked: number | null = null;
  let hovered: (tile: number | null) => void = () => {};

  const place = (): Place | null => {
    if (!osd.viewport || !osd.isOpen()) return null;
    const at = osd.viewport.viewportToViewerElementCoordinates(new OpenSeadragon.Point(0, 0));
    const to = osd.viewport.viewportToViewerElementCoordinates(new OpenSeadragon.Point(1, 0));
    return {
      scale: to.x - at.x,
      x: at.x,
      y: at.y,
      width: holder.clientWidth,
      height: holder.clientHeight,
      ratio: devicePixelRatio,
    };
  };
  const repaint = () => {
    const at = place();
    if (at === null) return;
    const { ratio } = at;
    const [width, height] = [Math.round(at.width * ratio), Math.round(at.height * ratio)];
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
    }
    const context = canvas.getContext("2d", { willReadFrequently: true })!;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, at.width, at.height);
    painter(context, at, slide);
    if (marked !== null) drawRing(context, at, slide, marked);
    drawScaleBar(context, at, slide);
  };
  const fail = (message: string) => {
    trouble.textContent = message;
    trouble.hidden = false;
  };
  if (slide.message) fail(`${slide.message}. The tiles are shown without tissue.`);
  let asked = false;
  osd.addHandler("tile-load-failed", () => {
    if (asked) return;
    asked = true;
    askTrouble(slide.number).then(
      (message) => {
        if (message) fail(message);
        else asked = false;
      },
      (error: Error) => fail(error.message),
    );
  });
  // The slide opens before the page has given it its size: fit it again once it has.
  let fitting = first === null;
  for (const name of ["canvas-press", "canvas-scroll"] as const)
    osd.addHandler(name, () => (fitting = false));
  osd.addHandler("resize", () => fitting && osd.viewport.goHome(true));
  osd.addHandler("open", () => {
    if (first) setViewport(first);
    else osd.viewport.goHome(true);
    repaint();
    element.dataset.open = "true";
    osd.world.getItemAt(0).addHandler("fully-loaded-change", ({ fullyLoaded }) => {
      element.dataset.loaded = String(fullyLoaded);
    });
  });
  osd.addHandler("update-viewport", repaint);
  osd.addHandler("resize", repaint);
  osd.addHandler("canvas-key", (event) => {
    const { key } = event.originalEvent as KeyboardEvent;
    // Arrows and Space belong to the slider; rotating and flipping would misplace the tiles.
    if (/^(Arrow|[rRfF ]$)/.test(key)) event.preventDefaultAction = true;
  });
  const setViewport = ({ x, y, zoom }: Viewport) => {
    osd.viewport.zoomTo(zoom, undefined, true);
    osd.viewport.panTo(new OpenSeadragon.Point(x, y), true);
  };
  element.append(pointing(holder, slide, place, (tile) => hovered(tile)));

  function buttons(): HTMLElement {
    const button = (label: string, sign: string, click: () => void) => {
      const one = h("button", { type: "button", title: label, "aria-label": label }, sign);
      one.addEventListener("click", click);
      return one;
    };
    const by = (factor: number) => () => {
      fitting = false;
      osd.viewport.zoomBy(factor);
      osd.viewport.applyConstraints();
    };
    return h(
      "div",
      { class: "stage-buttons" },
      button("Zoom in", "+", by(1.6)),
      button("Zoom out", "−", by(1 / 1.6)),
      button("Whole slide", "⤢", () => osd.viewport.goHome()),
      ...(slide.pyramid?.mpp ? [5, 10, 20, 40] : []).map((power) =>
        button(`Magnification ${power}×`, `${power}×`, () => magnify(power)),
      ),
    );
  }
  /** Zoom as an objective of this power shows it: 10 micrometres per pixel over the power. */
  function magnify(power: number): void {
    fitting = false;
    const zoom = (slide.pyramid!.mpp! * power) / 10;
    osd.viewport.zoomTo(osd.world.getItemAt(0).imageToViewportZoom(zoom));
    osd.viewport.applyConstraints();
  }
  onTheme(element, repaint);
  return {
    element,
    osd,
    slide,
    setPainter(next) {
      painter = next;
      repaint();
    },
    repaint,
    highlight(tile) {
      marked = tile;
      repaint();
    },
    centre(tile) {
      fitting = false;
      const x = slide.left[tile] + slide.side / 2;
      const y = slide.top[tile] + slide.side / 2;
      osd.viewport.panTo(new OpenSeadragon.Point(x, y));
      osd.viewport.zoomTo(Math.max(osd.viewport.getZoom(), 0.12 / slide.side));
    },
    place,
    viewport() {
      if (!osd.isOpen()) return null;
      const { x, y } = osd.viewport.getCenter();
      return { x, y, zoom: osd.viewport.getZoom() };
    },
    setViewport,
    onHover(hover) {
      hovered = hover;
    },
    close() {
      osd.destroy();
    },
  };
}
