/** Screen of the export: what is on the screen as a picture, figure, table, objects or link. */

import { h } from "../../page/dom";
import { counted } from "../../page/format";
import type { OpenSlide } from "../openSlide";
import { kControl } from "../parts/kControl";
import { slideBar } from "../parts/slideBar";
import { stagePair } from "../parts/stagePair";
import { askFile } from "../server";
import { pairOf, type ScreenView, type Session, startIndex } from "../session";
import { revealPainter } from "../tissue/painters";
import { snapshotPng, snapshotSvg } from "../tissue/snapshot";

export function exportScreen(session: Session, slide: OpenSlide): ScreenView {
  const { data } = slide;
  const pair = pairOf(session, slide);
  const kMax = Math.max(session.cohort.audit.k_max, data.ks[data.ks.length - 1]);
  const stages = stagePair(session, slide, [`Ranking A, ${pair[0]}`, `Ranking B, ${pair[1]}`]);
  const said = h("p", { class: "soft", role: "status", id: "export-said" });
  const count = () => data.ks[control.index()];
  const show = (index: number) => {
    for (const [i, stage] of stages.stages.entries()) {
      stage.setPainter(revealPainter(pair[i], data.ks[index], kMax));
      stages.heads[i].replaceChildren(
        h("span", { class: `letter letter-${"ab"[i]}` }, "AB"[i]),
        h("strong", {}, `${pair[i]}: first ${counted(data.ks[index], "tile")}`),
      );
    }
  };
  const start = startIndex(session, slide, pair);
  const control = kControl(data.ks, start, { left: 9, right: 9 }, show, (index) =>
    session.remember({ k: data.ks[index] }),
  );

  /** A button that makes a file and says so, or says why not. */
  const button = (
    id: string,
    label: string,
    make: () => Promise<{ name: string; content: Blob }>,
  ) => {
    const one = h("button", { type: "button", id }, label);
    one.addEventListener("click", async () => {
      one.setAttribute("aria-disabled", "true");
      said.textContent = "Working …";
      try {
        const { name, content } = await make();
        save(name, content);
        said.textContent = `Saved ${name}.`;
      } catch (error) {
        said.textContent = (error as Error).message;
      }
      one.removeAttribute("aria-disabled");
    });
    return one;
  };
  const fromServer = (kind: string, columns: string[]) => () =>
    askFile(
      `api/slides/${slide.number}/export/${kind}?k=${count()}&rankings=${encodeURIComponent(columns.join(","))}`,
    );
  const both = [...new Set(pair)];
  const caption = () =>
    `${slide.id}: first ${counted(count(), "tile")} of A ${pair[0]} and B ${pair[1]}`;
  const stem = () => `${slide.id.replace(/[^\w.-]+/g, "_")}-k${count()}`;
  const address = h("input", {
    type: "text",
    id: "deep-link",
    readonly: true,
    "aria-label": "Link",
  });
  const refresh = () => (address.value = location.href);
  const copy = h("button", { type: "button", id: "copy-link" }, "Copy");
  copy.addEventListener("click", async () => {
    refresh();
    address.select();
    try {
      await navigator.clipboard.writeText(address.value);
      said.textContent = "Link copied.";
    } catch {
      said.textContent = "The link is selected: copy it with the keyboard.";
    }
  });
  address.addEventListener("focus", () => {
    refresh();
    address.select();
  });
  show(start);
  queueMicrotask(refresh);
  return {
    element: h(
      "div",
      { class: "screen export-screen" },
      slideBar(session, slide),
      stages.element,
      h("div", { class: "curve-box" }, control.element),
      h(
        "div",
        { class: "export-cards" },
        card(
          "This view",
          "Both slides as they are on the screen, with scale bar.",
          button("view-png", "PNG", async () => ({
            name: `${stem()}.png`,
            content: await snapshotPng(stages.stages, caption(), slide),
          })),
          button("view-svg", "SVG", async () => ({
            name: `${stem()}.svg`,
            content: snapshotSvg(stages.stages, caption(), slide, pair, count(), kMax),
          })),
        ),
        card(
          "Figure for print",
          "The whole slide, both rankings, and pictures of the first eight tiles.",
          ...["png", "svg", "pdf"].map((kind) =>
            button(`figure-${kind}`, kind.toUpperCase(), fromServer(kind, both)),
          ),
        ),
        card(
          "QuPath",
          "The first K tiles as detections, one file per ranking.",
          ...both.map((name, i) =>
            button(`geojson-${"ab"[i]}`, `GeoJSON ${"AB"[i]}`, fromServer("geojson", [name])),
          ),
        ),
        card(
          "Table",
          "A row per ranking and tile: rank, score, position, p and Δp.",
          button("csv", "CSV", fromServer("csv", both)),
        ),
        card("Link", "To this slide, K, pair and part, while the viewer runs.", address, copy),
      ),
      said,
    ),
    key: control.key,
    close() {
      control.stop();
      stages.close();
    },
  };
}

function card(title: string, text: string, ...actions: HTMLElement[]): HTMLElement {
  return h(
    "section",
    { class: "export-card" },
    h("h2", {}, title),
    h("p", { class: "soft" }, text),
    h("div", { class: "buttons" }, ...actions),
  );
}

function save(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = h("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
