/** Reader study: rankings hidden, and every mark of the reader goes to a CSV file. */

import { checkbox, h } from "../../page/dom";
import { counted } from "../../page/format";
import type { OpenSlide } from "../openSlide";
import { sendMark } from "../server";
import type { Opinion } from "./pictureGrid";

export interface ReaderPanel {
  element: HTMLElement;
  marks(): Map<number, Opinion>;
  send(
    tile: number,
    opinion: Opinion,
    rankings: { ranking: string; rank: number }[],
  ): Promise<boolean>;
}

/** Marks of this visit by slide; the file has them all. */
const given = new Map<number, Map<number, Opinion>>();
let name = "";

export function readerPanel(slide: OpenSlide, blind: (on: boolean) => void): ReaderPanel {
  const reader = h("input", {
    type: "text",
    id: "reader",
    maxlength: 80,
    autocomplete: "off",
    placeholder: "Name or code",
  });
  reader.value = name;
  reader.addEventListener("input", () => (name = reader.value.trim()));
  const said = h("p", { class: "soft", role: "status", id: "marks-said" });
  const own = given.get(slide.number) ?? new Map<number, Opinion>();
  given.set(slide.number, own);
  const tell = () => {
    said.textContent = own.size ? `${counted(own.size, "tile")} of this slide marked.` : "";
  };
  tell();
  return {
    element: h(
      "details",
      { class: "reader" },
      h("summary", {}, "Reader study"),
      h("p", { class: "soft" }, EXPLAINED),
      h("label", { for: "reader" }, "Reader ", reader),
      checkbox("hide the rankings", false, blind),
      said,
    ),
    marks: () => own,
    async send(tile, opinion, rankings) {
      if (!name) {
        said.textContent = "Who is reading? Enter a name first.";
        reader.focus();
        return false;
      }
      try {
        for (const { ranking, rank } of rankings)
          await sendMark({
            reader: name,
            slide: slide.number,
            tile,
            ranking,
            rank,
            opinion,
            blinded: true,
          });
      } catch (error) {
        said.textContent = `Not saved: ${(error as Error).message}`;
        return false;
      }
      own.set(tile, opinion);
      tell();
      return true;
    },
  };
}

const EXPLAINED =
  "With the rankings hidden, the first K tiles of A and B appear together in random order. " +
  "Each mark is appended to the CSV file of foci view --marks.";
