"""Renew every picture in ``docs/images`` that shows FOCI: diagrams and screenshots of a report.

    python -m tools.site.pictures

One real audit is behind all of them, the gallery's *yes*. Screenshots are taken light and dark.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page

from tools import architecture_picture
from tools.screenshots import chromium, wait_until_drawn
from tools.site import diagrams
from tools.site.gallery import hang
from tools.site.pages import DOCS, ROOT

RUNS = ROOT / "build" / "gallery"
REPORTS = ROOT / "build" / "pictured"
IMAGES = DOCS / "images"
COLOURS = 128
"""Of the palette of a PNG: a report has few colours, and a smaller file loads sooner."""

NUMBERED = """places => {
  places.forEach((place, i) => {
    const element = document.querySelector(place)
    if (!element) throw new Error("nothing to annotate: " + place)
    const box = element.getBoundingClientRect()
    const badge = document.createElement("div")
    badge.textContent = i + 1
    badge.style.cssText = `position:absolute;left:${box.left + scrollX - 32}px;` +
      `top:${box.top + scrollY - 4}px;width:24px;height:24px;border-radius:12px;` +
      "background:#c2571a;color:#fff;font:600 14px/24px system-ui;text-align:center;z-index:99"
    document.body.append(badge)
  })
}"""


@dataclass(frozen=True)
class Shot:
    """A picture of a page, or of one element of it.

    Attributes:
        name: Of the file, without ending.
        element: CSS selector; None for the top of the page.
        width: Of the window in CSS pixels.
        height: Of the window, and of the picture where there is no element.
        numbered: CSS selectors of what gets a number, in order.
        fragment: Of the address: the slide that is open.
    """

    name: str
    element: str | None = None
    width: int = 1280
    height: int = 800
    numbered: tuple[str, ...] = ()
    fragment: str = ""


SHOTS = (
    Shot(
        "report-annotated",
        width=1440,
        height=780,
        numbered=("header h1", ".word", ".carried-figure", "#best-to-worst"),
    ),
    Shot("report-chart", ".carried-figure", width=1440),
)


def main() -> None:
    """Draw the rooms; run the audit if it has not been run, and draw everything else from it."""
    architecture_picture.main()
    hang("<!-- live: yes -->", RUNS, REPORTS)
    diagrams.main(str(RUNS / "yes"))
    with chromium() as browser:
        for shot in SHOTS:
            for dark in (False, True):
                taken = take(browser, REPORTS / "yes.html", shot, dark=dark)
                save(taken, IMAGES / f"{shot.name}{'-dark' if dark else ''}.png")


def take(browser: Browser, report: Path, shot: Shot, *, dark: bool) -> bytes:
    """A screenshot as PNG, at twice the resolution."""
    context = browser.new_context(
        viewport={"width": shot.width, "height": shot.height},
        device_scale_factor=2,
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
    )
    try:
        tab: Page = context.new_page()
        tab.goto(report.resolve().as_uri() + shot.fragment)
        wait_until_drawn(tab)
        if shot.numbered:
            tab.evaluate(NUMBERED, list(shot.numbered))
        if shot.element is None:
            return tab.screenshot()
        return tab.locator(shot.element).first.screenshot()
    finally:
        context.close()


def save(png: bytes, path: Path) -> None:
    """Write a screenshot with a palette of few colours."""
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    main()
