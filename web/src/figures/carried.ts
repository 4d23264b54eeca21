/** The chart of the page: on how many slides the first K tiles carry the decision. */

import { type Ink, inkOf, shade, stroke } from "../charts/ink";
import { drawnToWidth } from "../charts/resize";
import { powersOfTwo } from "../charts/ticks";
import { s } from "../page/dom";
import { percent, tiles } from "../page/format";
import type { Carried } from "../page/payload";
import { colour, onTheme } from "../page/theme";

export const TITLE = "Share of slides whose decision the first tiles carry";
/** Count of tiles at which the chart is read in words. */
const MARKED = 32;
/** Narrower charts have their labels above the plot. */
const WIDE = 560;
/** Characters of a line's name that fit beside the chart. */
const LONGEST_NAME = 16;

export interface Drawn {
  ranking: string;
  /** In plain words. */
  name: string;
  ink: Ink;
  share: number[];
  low: (number | null)[];
  high: (number | null)[];
  /** For example "80% at 32 tiles". */
  says: string;
}

/** The lines of the chart, the one that matters most last, so that it lies on top. */
export function drawnLines(chart: Carried, map: string): Drawn[] {
  const order = ["random", chart.best, chart.map].filter((name) => name && name in chart.lines);
  return [...new Set(order as string[])].map((ranking) => {
    const names = { random: "random tiles", [chart.best ?? ""]: "best order found" };
    return {
      ranking,
      name: names[ranking] ?? map,
      ink: inkOf(ranking),
      ...chart.lines[ranking],
      says: `${percent(valueAt(chart, chart.lines[ranking].share, mark(chart)))} at ${counted(mark(chart))}`,
    };
  });
}

/** Share at the largest known count up to K; 0 before the first. */
export function valueAt({ ks }: Carried, share: number[], k: number): number {
  const at = ks.findLastIndex((count) => count <= k);
  return at < 0 ? 0 : share[at];
}

const mark = ({ ks }: Carried) => Math.min(MARKED, ks[ks.length - 1]);
const counted = (k: number) => `${tiles(k)} tile${k === 1 ? "" : "s"}`;

/** `map`: what the judged map is called. */
export function carriedChart(
  chart: Carried,
  map: string,
  height: number,
  titled: boolean,
): HTMLElement {
  const draw = (width: number) => drawCarried(chart, map, width, height, titled);
  const element = drawnToWidth("carried", draw);
  onTheme(element, () => element.clientWidth && element.replaceChildren(draw(element.clientWidth)));
  return element;
}

/** The chart as SVG that needs no style sheet, so that it can be saved as it is. */
export function drawCarried(
  chart: Carried,
  map: string,
  width: number,
  height: number,
  titled: boolean,
): SVGSVGElement {
  const lines = drawnLines(chart, map);
  const wide = width >= WIDE;
  const head = titled ? 30 : 6;
  // Charts beside each other keep space for the same labels.
  const keys = wide ? 0 : 18 * (titled ? lines.length + (chart.minimum ? 1 : 0) : 4);
  const box = {
    left: 46,
    right: width - (wide ? 158 : 14),
    top: head + keys + 8,
    bottom: head + keys + height - 44,
  };
  const last = chart.ks[chart.ks.length - 1];
  const x = (k: number) =>
    box.left + ((box.right - box.left) * Math.log(Math.max(k, 1))) / Math.log(Math.max(last, 2));
  const y = (share: number) => box.bottom - (box.bottom - box.top) * share;
  const [text, soft, grid] = ["--text", "--soft", "--grid"].map(colour);
  const total = head + keys + height;
  const svg = s("svg", {
    width,
    height: total,
    viewBox: `0 0 ${width} ${total}`,
    class: "own",
    role: "img",
    "aria-label": `${TITLE}: ${lines.map((l) => `${l.name} ${l.says}`).join(", ")}`,
    "font-family": "system-ui, sans-serif",
    "font-size": 13,
  });
  const write = (at: [number, number], said: string, more: Record<string, string | number> = {}) =>
    svg.append(s("text", { x: at[0], y: at[1], fill: text, ...more }, said));
  if (titled)
    write([0, 16], wide ? TITLE : TITLE.replace("Share of s", "S"), {
      "font-weight": 650,
      "font-size": wide ? 16 : 14,
    });
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    svg.append(
      s("line", { x1: box.left, x2: box.right, y1: y(share), y2: y(share), stroke: grid }),
    );
    write([box.left - 8, y(share) + 4], percent(share), { fill: soft, "text-anchor": "end" });
  }
  const step = width < 300 ? 2 : 1;
  for (const k of powersOfTwo(last).filter((_, i) => i % step === 0))
    write([x(k), box.bottom + 18], String(k), { fill: soft, "text-anchor": "middle" });
  write([(box.left + box.right) / 2, box.bottom + 37], "first tiles taken, in the order shown", {
    fill: soft,
    "text-anchor": "middle",
  });
  svg.append(
    s("line", {
      x1: x(mark(chart)),
      x2: x(mark(chart)),
      y1: box.top,
      y2: box.bottom,
      stroke: text,
      "stroke-width": 1,
      class: "marked",
    }),
  );
  const steps = (share: (number | null)[]) =>
    share.map((value, i) => `${i ? `H${x(chart.ks[i])}V` : `M${x(chart.ks[0])} `}${y(value!)}`);
  for (const { ink, low, high } of lines) {
    if (low.includes(null) || high.includes(null)) continue;
    // Back along the lower edge, from right to left.
    const back = low.map((_, i) => low.length - 1 - i);
    const lower = back.map((i) => `V${y(low[i]!)}H${x(chart.ks[Math.max(i, 0)])}`);
    svg.append(s("path", { d: `${steps(high).join("")}${lower.join("")}Z`, fill: shade(ink) }));
  }
  if (chart.minimum)
    svg.append(
      s("path", { d: steps(chart.minimum).join(""), fill: "none", stroke: text, class: "minimum" }),
    );
  for (const { ranking, ink, share } of lines)
    svg.append(
      s("path", {
        d: steps(share).join(""),
        fill: "none",
        stroke: stroke(ink),
        "stroke-width": ranking === "random" ? 2 : 3,
        "stroke-dasharray": ranking === "random" ? "2 4" : null,
        "data-ranking": ranking,
      }),
    );
  typicalMark(svg, chart, lines, x, y, box.right, wide);
  const entries = lines.map((line) => ({
    name: line.name,
    says: line.says,
    fill: stroke(line.ink),
    end: line.share[line.share.length - 1],
  }));
  if (chart.minimum)
    entries.unshift({
      name: "best possible",
      says: "proven",
      fill: text,
      end: chart.minimum.at(-1)!,
    });
  const places = stacked(
    entries.map(({ end }) => y(end) + 4),
    entries.map(({ says }) => (says ? 36 : 19)),
    box.bottom,
  );
  for (const [i, { name, says, fill }] of [...entries].reverse().entries()) {
    const at = entries.length - 1 - i;
    if (wide) {
      // a map from a file may have any name
      const short = name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME - 1)}…` : name;
      write([box.right + 10, places[at]], short, { fill, "font-weight": 650 });
      write([box.right + 10, places[at] + 17], says, { fill });
    } else {
      const row = head + 18 * i + 12;
      svg.append(
        s("line", { x1: 2, x2: 20, y1: row - 4, y2: row - 4, stroke: fill, "stroke-width": 3 }),
      );
      write([28, row], says ? `${name}: ${says}` : name, { fill, "font-weight": 600 });
    }
  }
  return svg;
}

/** Places of labels from top to bottom, each with space for its own lines, none below `end`. */
export function stacked(wanted: number[], tall: number[], end: number): number[] {
  const order = wanted.map((_, i) => i).sort((a, b) => wanted[a] - wanted[b]);
  const places = [...wanted];
  for (const [i, at] of order.entries())
    if (i) places[at] = Math.max(wanted[at], places[order[i - 1]] + tall[order[i - 1]]);
  let floor = end + 19;
  for (const at of order.reverse()) {
    places[at] = Math.min(places[at], floor - tall[at]);
    floor = places[at];
  }
  return places;
}

/** "10 tiles on a typical slide", at the line in use. */
function typicalMark(
  svg: SVGSVGElement,
  chart: Carried,
  lines: Drawn[],
  x: (k: number) => number,
  y: (share: number) => number,
  right: number,
  wide: boolean,
): void {
  const own = lines.find((line) => line.ranking === (chart.best ?? chart.map));
  if (chart.typical === null || !own || chart.typical > chart.ks[chart.ks.length - 1]) return;
  const fill = stroke(own.ink);
  const [cx, cy] = [x(chart.typical), y(valueAt(chart, own.share, chart.typical))];
  const amount = counted(chart.typical);
  const said = wide ? `${amount} on a typical slide` : `typical: ${amount}`;
  const long = 7 * said.length;
  const leftwards = cx > 46 + 0.92 * long;
  const inside = cx + 10 + long < right;
  svg.append(
    s("line", { x1: cx, x2: cx, y1: cy, y2: y(0), stroke: fill, "stroke-dasharray": "3 3" }),
    s("circle", { cx, cy, r: 5, fill }),
    s(
      "text",
      {
        x: leftwards ? cx - 10 : inside ? cx + 10 : right,
        y: leftwards ? cy - 6 : cy + 18,
        fill,
        "font-weight": 650,
        "text-anchor": leftwards || !inside ? "end" : "start",
        stroke: colour("--page"),
        "stroke-width": 4,
        "paint-order": "stroke",
      },
      said,
    ),
  );
}

/** The chart as CSV, line for line what tables/carried.csv holds. */
export function carriedCsv(chart: Carried): string {
  const rows = Object.entries(chart.lines).flatMap(([name, line]) =>
    chart.ks.map((k, i) =>
      [quoted(name), k, line.share[i], line.low[i] ?? "", line.high[i] ?? "", chart.n_slides].join(
        ",",
      ),
    ),
  );
  const least = (chart.minimum ?? []).map((share, i) =>
    ["proven minimum", chart.ks[i], share, "", "", chart.n_slides].join(","),
  );
  return ["order,k,share,low,high,n_slides", ...rows, ...least].join("\n") + "\n";
}

const quoted = (name: string) => (/[",\n]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name);
