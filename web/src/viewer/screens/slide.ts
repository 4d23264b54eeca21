/** Screen of one slide: two rankings on the tissue, one slider, curves, and pictures of the tiles. */

import { checkbox, h } from "../../page/dom";
import { pairCurves } from "../../slides/curves";
import { flipAt, type OpenSlide } from "../openSlide";
import { decisionText, flipText, type Seen } from "../parts/decision";
import { exportMenu } from "../parts/exportMenu";
import { kControl } from "../parts/kControl";
import { slideBar } from "../parts/slideBar";
import { slideList } from "../parts/slideList";
import { stagePair } from "../parts/stagePair";
import { tileStrip } from "../parts/tileStrip";
import { pairOf, type ScreenView, type Session, startIndex } from "../session";
import { type Look, revealPainter } from "../tissue/painters";
import { differencePainter, LOOK, PARTS, partsOf, partsPainter } from "../tissue/setPainters";

/** What the reader has switched on; it stays from slide to slide. */
const shown = { heat: false, opacity: 0.5, hidden: false, apart: false, seen: "all" as Seen };
const SEEN: [Seen, string][] = [
  ["all", "All tiles"],
  ["only", "Only these"],
  ["without", "Without these"],
];

export function slideScreen(session: Session, slide: OpenSlide): ScreenView {
  const { data } = slide;
  const { cohort } = session;
  const pair = pairOf(session, slide);
  const colours = pair.map((column) => colourOf(session, column));
  const stages = stagePair(session, slide, [
    `Ranking A, ${slide.names[pair[0]]}, on the slide`,
    `Ranking B, ${slide.names[pair[1]]}, on the slide`,
  ]);
  const removed = Object.fromEntries(
    Object.entries(slide.deletions).map(([column, { ks, p }]) => [
      column,
      { ks, p, flip: flipAt(slide, column) },
    ]),
  );
  const curves = pairCurves(
    cohort.audit,
    data,
    removed,
    pair,
    [`A, ${slide.names[pair[0]]}`, `B, ${slide.names[pair[1]]}`],
    slide.predicted,
    (k) => control.set(data.ks.findLastIndex((one) => one <= k)),
  );
  const overlap = h("p", { class: "read", id: "overlap", role: "status" });
  const strip = tileStrip(slide, {
    hover: (tile) => stages.stages.forEach((stage) => stage.highlight(tile)),
    choose: (tile) => stages.stages[0].centre(tile),
  });
  let side: 0 | 1 = 0;
  const start = startIndex(session, slide, pair, flipAt(slide, pair[0]) ?? 8);

  const paint = (index: number) => {
    const k = data.ks[index];
    for (const [i, stage] of stages.stages.entries()) {
      const look: Look = {
        tiles: shown.hidden ? "hidden" : shown.heat ? "heat" : "outlines",
        opacity: shown.opacity,
        seen: shown.seen,
        colour: colours[i],
      };
      const apart = i === 0 ? partsPainter(pair, k) : differencePainter(pair);
      stage.setPainter(shown.apart && !shown.hidden ? apart : revealPainter(pair[i], k, look));
    }
  };
  const show = (index: number) => {
    const k = data.ks[index];
    paint(index);
    for (const i of [0, 1]) {
      const said = decisionText(cohort, slide, pair[i], k, shown.seen);
      stages.heads[i].replaceChildren(
        h("span", { class: `letter letter-${"ab"[i]}` }, "AB"[i]),
        h("strong", {}, slide.names[pair[i]]),
        h("span", { class: "decision" }, said),
        h("span", { class: "soft" }, flipText(slide, pair[i])),
      );
    }
    curves.setCursor(k);
    tell(k);
    overlap.textContent = sharedText(slide, pair, k);
    strip.show(pair[side], k);
  };
  const again = () => show(control.index());
  const control = kControl(data.ks, start, curves.edges, show, (index) =>
    session.remember({ k: data.ks[index] }),
  );

  /** To the count at which the decision flips under A or B, or the last one before it. */
  const jump = (i: 0 | 1) => {
    const flip = flipAt(slide, pair[i]);
    if (flip === null) return;
    side = i;
    shown.seen = "without";
    pressSeen();
    const at = data.ks.findIndex((k) => k >= flip);
    control.set(at < 0 ? data.ks.length - 1 : at);
    session.remember({ k: data.ks[control.index()] });
  };
  const jumps = ([0, 1] as const).map((i) => {
    const flip = flipAt(slide, pair[i]);
    const one = h(
      "button",
      { type: "button", id: `flip-${"ab"[i]}`, disabled: flip === null },
      `${"AB"[i]}: ${flip === null ? "decision survives" : `flips at ${flip}`}`,
    );
    one.addEventListener("click", () => jump(i));
    return one;
  });
  const seen = SEEN.map(([name, label]) => {
    const one = h("button", { type: "button", id: `seen-${name}` }, label);
    one.addEventListener("click", () => {
      shown.seen = name;
      pressSeen();
      again();
    });
    return one;
  });
  const pressSeen = () => {
    for (const [i, one] of seen.entries())
      one.setAttribute("aria-pressed", String(SEEN[i][0] === shown.seen));
  };
  pressSeen();
  const opacity = h("input", {
    type: "range",
    id: "opacity",
    min: 0,
    max: 100,
    value: 100 * shown.opacity,
    "aria-label": "Opacity of the heat map",
  });
  opacity.addEventListener("input", () => {
    shown.opacity = Number(opacity.value) / 100;
    paint(control.index());
  });
  const hide = checkbox("hide everything (H)", shown.hidden, (on) => {
    shown.hidden = on;
    paint(control.index());
  });
  const group = (name: string, ...children: HTMLElement[]) =>
    h("div", { class: "buttons", role: "group", "aria-label": name }, ...children);
  const apart = h("span", { class: "soft apart" });
  const tools = h(
    "div",
    { class: "tools" },
    checkbox("heat map, dark is first", shown.heat, (on) => {
      shown.heat = on;
      paint(control.index());
    }),
    opacity,
    checkbox("where A and B differ", shown.apart, (on) => {
      shown.apart = on;
      tell(data.ks[control.index()]);
      paint(control.index());
    }),
    hide,
    group("What the model sees", ...seen),
    group("Jump to where the decision flips", ...jumps),
    exportMenu(slide, stages.stages, pair, colours, () => data.ks[control.index()]),
  );
  /** How many of the first K tiles are whose, while that is shown. */
  const tell = (k: number) => {
    const parts = shown.apart ? partsOf(slide, pair, k) : null;
    apart.textContent = parts
      ? `${PARTS.map((part) => `${LOOK[part].name} ${parts[part].length}`).join(" · ")}. Right: + earlier in A, − earlier in B.`
      : "";
  };
  const sides = ([0, 1] as const).map((i) => {
    const one = h(
      "button",
      { type: "button", id: `tiles-${"ab"[i]}` },
      `${"AB"[i]}, ${slide.names[pair[i]]}`,
    );
    one.addEventListener("click", () => {
      side = i;
      press();
      again();
    });
    return one;
  });
  const press = () => {
    for (const i of [0, 1]) sides[i].setAttribute("aria-pressed", String(side === i));
  };
  for (const stage of stages.stages)
    stage.onHover((tile) => {
      strip.highlight(tile);
      for (const other of stages.stages) if (other !== stage) other.highlight(tile);
    });
  press();
  show(start);
  const [legend, plot] = curves.chart.body;
  return {
    element: h(
      "div",
      { class: "screen slide-screen" },
      slideList(session, slide.number),
      h(
        "div",
        { class: "slide-main" },
        slideBar(session, slide),
        data.placed ? null : h("p", { class: "note" }, NOT_PLACED),
        tools,
        apart,
        stages.element,
        h("div", { class: "curve-box" }, legend, plot, control.element, overlap),
        h("section", { "aria-label": "First tiles" }, group("Tiles of", ...sides), strip.element),
      ),
    ),
    key(event) {
      if (event.key.toLowerCase() === "h" && !event.ctrlKey && !event.metaKey) {
        hide.querySelector("input")!.click();
        return true;
      }
      if (event.key.toLowerCase() === "f" && !event.ctrlKey && !event.metaKey) {
        jump(side);
        return true;
      }
      return control.key(event);
    },
    close() {
      control.stop();
      stages.close();
    },
  };
}

const NOT_PLACED =
  "This slide has no coordinates: its tiles are drawn on a plain grid, in bag order.";

/** Colour of a column's ranking, on tissue, which is light in either theme. */
function colourOf({ cohort }: Session, column: string): string {
  const owner = cohort.audit.rankings.find((one) => one.columns.includes(column))!.name;
  return cohort.colours[owner][0];
}

function sharedText(slide: OpenSlide, [a, b]: [string, string], k: number): string {
  const { data, ranks } = slide;
  const end = Math.min(k, data.n);
  let shared = 0;
  for (let i = 0; i < end; i++) if (ranks[b][data.order[a][i]] <= end) shared++;
  return `${shared} of the first ${end} tiles are the same in A and B`;
}
