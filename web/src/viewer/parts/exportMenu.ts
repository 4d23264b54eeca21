/** Menu of the slide: what is on the screen as a picture, figure, table, QuPath objects or link. */

import { h } from "../../page/dom";
import { counted } from "../../page/format";
import type { OpenSlide } from "../openSlide";
import { askFile } from "../server";
import { snapshotPng, snapshotSvg } from "../tissue/snapshot";
import type { Stage } from "../tissue/stage";

type File = { name: string; content: Blob };

export function exportMenu(
  slide: OpenSlide,
  stages: Stage[],
  pair: [string, string],
  colours: string[],
  count: () => number,
): HTMLElement {
  const said = h("p", { class: "soft", role: "status", id: "export-said" });
  /** A button that makes a file and says so, or says why not. */
  const button = (id: string, label: string, make: () => Promise<File>) => {
    const one = h("button", { type: "button", id }, label);
    one.addEventListener("click", async () => {
      said.textContent = "Working …";
      try {
        const { name, content } = await make();
        save(name, content);
        said.textContent = `Saved ${name}.`;
      } catch (error) {
        said.textContent = (error as Error).message;
      }
    });
    return one;
  };
  const fromServer = (kind: string, columns: string[]) => () =>
    askFile(
      `api/slides/${slide.number}/export/${kind}?k=${count()}&rankings=${encodeURIComponent(columns.join(","))}`,
    );
  const both = [...new Set(pair)];
  const caption = () =>
    `${slide.id}: first ${counted(count(), "tile")} of A, ${slide.names[pair[0]]}, and B, ${slide.names[pair[1]]}`;
  const stem = () => `${slide.id.replace(/[^\w.-]+/g, "_")}-k${count()}`;
  const copy = h("button", { type: "button", id: "copy-link" }, "Copy link");
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      said.textContent = "Link copied.";
    } catch {
      said.textContent = location.href;
    }
  });
  const row = (name: string, ...actions: HTMLElement[]) =>
    h(
      "div",
      { class: "menu-row" },
      h("span", {}, name),
      h("span", { class: "buttons" }, ...actions),
    );
  return h(
    "details",
    { class: "menu", id: "export" },
    h("summary", {}, "Export"),
    h(
      "div",
      { class: "menu-body" },
      row(
        "This view",
        button("view-png", "PNG", async () => ({
          name: `${stem()}.png`,
          content: await snapshotPng(stages, caption(), slide),
        })),
        button("view-svg", "SVG", async () => ({
          name: `${stem()}.svg`,
          content: snapshotSvg(stages, caption(), slide, pair, count(), colours),
        })),
      ),
      row(
        "Figure for print",
        ...["png", "svg", "pdf"].map((kind) =>
          button(`figure-${kind}`, kind.toUpperCase(), fromServer(kind, both)),
        ),
      ),
      row(
        "QuPath",
        ...both.map((name, i) =>
          button(`geojson-${"ab"[i]}`, `GeoJSON ${"AB"[i]}`, fromServer("geojson", [name])),
        ),
      ),
      row("Table of tiles", button("csv", "CSV", fromServer("csv", both))),
      row("While it runs", copy),
      said,
    ),
  );
}

function save(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = h("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
