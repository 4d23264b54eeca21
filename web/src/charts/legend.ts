/** Legend of a line chart: switches lines on and off and shows the values under the cursor. */

import { h } from "../page/dom";
import { fixed } from "../page/format";
import { sample } from "./ink";
import type { Line } from "./lines";

export interface Legend {
  element: HTMLElement;
  show(index: number | null): void;
}

export function legend(
  lines: Line[],
  x: { label: string; values: number[] },
  toggled: (line: Line) => void,
): Legend {
  const where = h("span", { class: "legend-x" });
  const values = lines.map(() => h("span", { class: "legend-value" }));
  const buttons = lines.map((line, i) => {
    const button = h(
      "button",
      { type: "button", class: "legend-entry", "aria-pressed": !line.hidden ? "true" : "false" },
      sample(line.ink),
      line.name,
      values[i],
    );
    button.addEventListener("click", () => {
      line.hidden = !line.hidden;
      button.setAttribute("aria-pressed", line.hidden ? "false" : "true");
      toggled(line);
    });
    return button;
  });
  return {
    element: h("div", { class: "legend" }, ...buttons, where),
    show(index) {
      where.textContent = index === null ? "" : `${x.label} = ${x.values[index]}`;
      for (const [i, line] of lines.entries()) {
        values[i].textContent = index === null ? "" : ` ${fixed(line.y[index])}`;
      }
    },
  };
}
