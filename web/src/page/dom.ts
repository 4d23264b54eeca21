/** Create HTML and SVG elements. Text is always a text node, so a name can never become markup. */

type Child = Node | string | number | null;
type Attributes = Record<string, string | number | boolean | null | undefined>;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), attributes, children);
}

export function s<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill<E extends Element>(element: E, attributes: Attributes, children: Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, String(value));
  }
  for (const child of children) if (child !== null) element.append(child as Node | string);
  return element;
}

export function find<E extends Element = HTMLElement>(selector: string): E | null {
  return document.querySelector<E>(selector);
}

/** A table with a header row; the style sheet aligns numbers to the right. */
export function table(head: string[], rows: (string | number)[][]): HTMLTableElement {
  const cell = (value: string | number, i: number) =>
    i === 0 ? h("th", { scope: "row" }, value) : h("td", {}, value);
  return h(
    "table",
    {},
    h("thead", {}, h("tr", {}, ...head.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map(cell)))),
  );
}

export function checkbox(
  label: string,
  checked: boolean,
  change: (on: boolean) => void,
): HTMLLabelElement {
  const box = h("input", { type: "checkbox" });
  box.checked = checked;
  box.addEventListener("change", () => change(box.checked));
  return h("label", { class: "check" }, box, label);
}
