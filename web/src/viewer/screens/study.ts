/** Screen of the reader study: one tile after the other, in random order, without its ranking. */

import { h } from "../../page/dom";
import { largeTile } from "../parts/tileDialog";
import { askFile, askStudy, sendMark } from "../server";
import type { ScreenView, Session } from "../session";
import type { ViewerStudy } from "../types.generated";

const EXPLAINED =
  "You see the first tiles of two rankings and as many random tiles, mixed, one at a time. Nothing " +
  "tells which is which. Every label is saved at once; come back under the same name to go on.";

export function studyScreen(session: Session): ScreenView {
  const body = h("div", { class: "study-body" });
  const explained = h("p", {}, EXPLAINED);
  const said = h("p", { class: "soft", role: "status", id: "study-said" });
  let study: ViewerStudy | null = null;
  let reader = "";
  let at = 0;

  const name = h("input", { type: "text", id: "reader", maxlength: 80, autocomplete: "off" });
  const first = h("input", { type: "number", id: "first", min: 1, max: 32, value: 8 });
  const begin = h("button", { type: "submit", id: "begin" }, "Begin");
  const form = h(
    "form",
    { class: "study-form" },
    h("label", { for: "reader" }, "Your name or code"),
    name,
    h("label", { for: "first" }, "Tiles per ranking and slide"),
    first,
    begin,
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    reader = name.value.trim();
    if (!reader) {
      said.textContent = "Who is reading? Enter a name first.";
      name.focus();
      return;
    }
    try {
      study = await askStudy(reader, Number(first.value) || 8);
    } catch (error) {
      said.textContent = (error as Error).message;
      return;
    }
    at = Math.max(
      study.tiles.findIndex((one) => one.label === null),
      0,
    );
    form.hidden = explained.hidden = true;
    ask();
  });

  function done(): number {
    return study!.tiles.filter((one) => one.label !== null).length;
  }

  /** Show the tile at this place of the order, and the labels to choose from. */
  function ask(): void {
    const { tiles, labels } = study!;
    if (!tiles.length) {
      body.replaceChildren(h("p", { class: "empty" }, "This audit has no tiles to show."));
      return;
    }
    const { slide, tile, label } = tiles[at];
    const buttons = labels.map((one, i) => {
      const key = i < 9 ? `${i + 1} ` : "";
      const button = h(
        "button",
        { type: "button", "aria-pressed": String(one === label), "data-label": one },
        h("span", { class: "soft", "aria-hidden": "true" }, key),
        one,
      );
      button.addEventListener("click", () => void give(one));
      return button;
    });
    const own = h("input", { type: "text", id: "own-label", maxlength: 40, autocomplete: "off" });
    const add = h("form", { class: "own-label" });
    add.append(
      h("label", { for: "own-label" }, "Another label"),
      own,
      h("button", { type: "submit" }, "Add"),
    );
    add.addEventListener("submit", (event) => {
      event.preventDefault();
      const text = own.value.trim();
      if (!text) return;
      if (!labels.includes(text)) labels.push(text);
      void give(text);
    });
    const step = (by: number, text: string) => {
      const button = h("button", { type: "button", disabled: !tiles[at + by] }, text);
      button.addEventListener("click", () => {
        at += by;
        ask();
      });
      return button;
    };
    body.replaceChildren(
      largeTile(slide, tile, `Tile ${at + 1} of ${tiles.length}`),
      h(
        "div",
        { class: "study-side" },
        h("p", { id: "study-progress" }, `Tile ${at + 1} of ${tiles.length}`),
        h("progress", { max: tiles.length, value: done(), "aria-label": "Tiles labelled" }),
        h("div", { class: "labels", role: "group", "aria-label": "What is it?" }, ...buttons),
        add,
        h("div", { class: "buttons" }, step(-1, "← Back"), step(1, "Skip →")),
      ),
    );
  }

  async function give(label: string): Promise<void> {
    const one = study!.tiles[at];
    try {
      await sendMark({ reader, slide: one.slide, tile: one.tile, label });
    } catch (error) {
      said.textContent = `Not saved: ${(error as Error).message}`;
      return;
    }
    one.label = label;
    const left = study!.tiles.length - done();
    said.textContent = left
      ? `Saved: ${label}. ${left} to go.`
      : "All tiles are labelled. Thank you.";
    if (at < study!.tiles.length - 1) at++;
    ask();
  }

  const results = h("button", { type: "button", id: "results" }, "Results with rankings (CSV)");
  results.addEventListener("click", async () => {
    try {
      const { name, content } = await askFile("api/labels.csv");
      const url = URL.createObjectURL(content);
      h("a", { href: url, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
    } catch (error) {
      said.textContent = (error as Error).message;
    }
  });
  return {
    element: h(
      "div",
      { class: "screen study-screen" },
      h("h1", { tabindex: -1 }, "Reader study"),
      explained,
      form,
      body,
      said,
      h(
        "details",
        {},
        h("summary", {}, "When all readers are done"),
        h(
          "p",
          { class: "soft" },
          `The file tells which ranking chose each tile of ${session.cohort.name}: readers should not open it before. foci report --truth reads the labels.`,
        ),
        results,
      ),
    ),
    key({ key, ctrlKey, metaKey }) {
      const label = study?.labels[Number(key) - 1];
      if (!label || ctrlKey || metaKey) return false;
      void give(label);
      return true;
    },
  };
}
