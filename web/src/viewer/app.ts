/** The viewer's shell: tabs, the open slide, links, and which keys go where. */

import { find, h } from "../page/dom";
import { startTheme } from "../page/theme";
import { type OpenSlide, openSlide } from "./openSlide";
import { slideScreen } from "./screens/slide";
import { slidesScreen } from "./screens/slides";
import { studyScreen } from "./screens/study";
import { askCohort, askSlide } from "./server";
import type { ScreenView, Session } from "./session";
import { formatState, parseState, type Screen, SCREENS, type State } from "./state";
import type { ViewerCohort } from "./types.generated";

const TITLES: Record<Screen, string> = {
  slides: "Slides",
  slide: "One slide",
  study: "Reader study",
};

export async function startViewer(): Promise<void> {
  const root = find("#viewer")!;
  try {
    const cohort = await askCohort();
    document.title = `${cohort.name}: FOCI viewer`;
    shell(root, cohort);
  } catch (error) {
    root.replaceChildren(trouble((error as Error).message));
  }
}

function shell(root: HTMLElement, cohort: ViewerCohort): void {
  const tabs = SCREENS.map((name) => h("a", { "data-screen": name }, TITLES[name]));
  const main = h("main", { id: "content" });
  const top = h(
    "header",
    { class: "viewer-top" },
    h("span", { class: "brand" }, h("strong", {}, "FOCI"), " ", cohort.name),
    h("nav", { "aria-label": "Screens" }, ...tabs),
    h("button", { type: "button", id: "theme", "aria-label": "Switch between light and dark" }),
  );
  const foot = h("footer", { class: "viewer-foot" }, h("p", { class: "soft" }, cohort.line));
  root.replaceChildren(top, main, foot);
  startTheme();

  let view: ScreenView | null = null;
  let open: OpenSlide | null = null;
  let turn = 0;
  const session: Session = {
    cohort,
    state: parseState(location.hash),
    listed: cohort.audit.slides.id.map((_, i) => i),
    go(part) {
      session.state = { ...session.state, ...part };
      history.pushState(null, "", formatState(session.state));
      void show(true);
    },
    remember(part) {
      session.state = { ...session.state, ...part };
      history.replaceState(null, "", formatState(session.state));
      linkTabs();
    },
  };

  function linkTabs(): void {
    for (const [i, name] of SCREENS.entries()) {
      tabs[i].href = formatState({ ...withSlide(session.state), screen: name });
      if (session.state.screen === name) tabs[i].setAttribute("aria-current", "page");
      else tabs[i].removeAttribute("aria-current");
    }
  }

  /** A screen of a slide needs one: the first of the list if none was chosen. */
  function withSlide(state: State): State {
    const { id } = cohort.audit.slides;
    return { ...state, slide: state.slide ?? id[session.listed[0] ?? 0] ?? null };
  }

  async function show(focus: boolean): Promise<void> {
    const mine = ++turn;
    const { screen } = session.state;
    linkTabs();
    if (screen === "slides") return put(slidesScreen(session), focus);
    if (screen === "study") return put(studyScreen(session), focus);
    session.state = withSlide(session.state);
    const number = cohort.audit.slides.id.indexOf(session.state.slide ?? "");
    if (number < 0)
      return put({ element: trouble(`This audit has no slide ${session.state.slide}.`) }, focus);
    try {
      if (open?.number !== number || open.message) {
        main.setAttribute("aria-busy", "true");
        open = openSlide(cohort, await askSlide(number));
      }
      if (mine === turn) put(slideScreen(session, open), focus);
    } catch (error) {
      if (mine === turn) put({ element: trouble((error as Error).message) }, focus);
    }
  }

  function put(next: ScreenView, focus: boolean): void {
    view?.close?.();
    view = next;
    main.removeAttribute("aria-busy");
    main.replaceChildren(next.element);
    if (focus) {
      scrollTo(0, 0);
      find("h1")?.focus({ preventScroll: true });
    }
  }

  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || belongs(event)) return;
    if (view?.key?.(event)) event.preventDefault();
  });
  addEventListener("popstate", () => {
    session.state = parseState(location.hash);
    void show(true);
  });
  void show(false);
}

/** Whether a key belongs to the element that has the focus. */
function belongs({ target, key }: KeyboardEvent): boolean {
  const element = target as Element;
  if (element.matches("input:not([type=range]), select, textarea")) return true;
  return (key === " " || key === "Enter") && element.matches("button, a, summary");
}

function trouble(message: string): HTMLElement {
  return h("div", { class: "screen" }, h("p", { class: "trouble", role: "alert" }, message));
}
