/** Filter controls of the table of slides: text, label, and boxes for what is worth a look. */

import { h } from "../page/dom";
import type { AuditPayload } from "../page/payload";
import type { Filter } from "./rows";

export function filterControls(
  payload: AuditPayload,
  presets: HTMLElement[],
  change: (part: Partial<Filter>) => void,
): HTMLElement {
  const search = h("input", {
    type: "search",
    placeholder: "Slide or patient",
    "aria-label": "Filter by slide or patient",
  });
  search.addEventListener("input", () => change({ text: search.value }));
  const box = (
    id: string,
    label: string,
    key: "wrong" | "undecided" | "unreached" | "fallsBack",
  ) => {
    const input = h("input", { type: "checkbox", id });
    input.addEventListener("change", () => change({ [key]: input.checked }));
    return h("label", { class: "check" }, input, label);
  };
  const labelled = payload.slides.label.some((label) => label !== null);
  const choice = h(
    "select",
    { "aria-label": "Filter by label" },
    h("option", { value: "" }, "all labels"),
  );
  for (const name of payload.classes) choice.append(h("option", { value: name }, name));
  choice.addEventListener("change", () =>
    change({ label: choice.selectedIndex ? choice.value : null }),
  );
  return h(
    "div",
    { class: "controls" },
    ...presets,
    search,
    labelled ? box("only-wrong", "misclassified", "wrong") : null,
    box("only-undecided", "undecided", "undecided"),
    box("only-falls-back", `falls back (${payload.headline})`, "fallsBack"),
    box("only-unreached", `never sure (${payload.headline})`, "unreached"),
    labelled ? choice : null,
  );
}
