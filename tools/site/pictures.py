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

from foci.audits import StoredAudit
from foci.demo.folder import Parameters
from foci.demo.painting import SLIDES, looks, write_slide
from foci.reports import write_report
from foci.slides.find import find_images, match_images, write_thumbnails
from tools import architecture_picture
from tools.screenshots import chromium, wait_until_drawn
from tools.site import diagrams
from tools.site.gallery import SEED, hang
from tools.site.pages import DOCS, ROOT

RUNS = ROOT / "build" / "gallery"
REPORTS = ROOT / "build" / "pictured"
IMAGES = DOCS / "images"
OPEN = "demo-0018-1"
"""The slide whose panel is shown: the map and the best order find its deciding tiles."""
COLOURS = 256
"""Of the palette of a PNG: a report has few colours, and a smaller file loads sooner."""

NUMBERED = """places => {
  places.forEach((place, i) => {
    const element = document.querySelector(place)
    if (!element) throw new Error("nothing to annotate: " + place)
    const box = element.getBoundingClientRect()
    const badge = document.createElement("div")
    badge.textContent = i + 1
    const beside = 32
    badge.style.cssText = `position:absolute;left:${box.left + scrollX - beside}px;` +
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
    Shot("report", height=785),
    Shot("report-phone", width=390, height=1012),
    Shot(
        "report-annotated",
        height=785,
        numbered=(".word", ".lead", "#chart", "#first-slides"),
    ),
    Shot("report-chart", "#chart", width=1440),
    Shot("report-slide", "#slide-view", height=900, fragment=f"#slide={OPEN}"),
)


def main() -> None:
    """Draw the packages; run the audit if it has not been run, and draw everything else from it."""
    architecture_picture.main()
    hang("<!-- live: yes -->", RUNS, REPORTS)
    diagrams.main(str(RUNS / "yes"))
    on_tissue = _with_tissue()
    with chromium() as browser:
        for shot in SHOTS:
            for dark in (False, True):
                taken = take(browser, on_tissue, shot, dark=dark)
                save(taken, IMAGES / f"{shot.name}{'-dark' if dark else ''}.png")


def _with_tissue() -> Path:
    """The same report with the painted slides behind its maps."""
    audit = StoredAudit.load(RUNS / "yes")
    names = [slide.slide_id for slide in audit.slides]
    parameters, images = Parameters(SEED, slides=240, classes=2), RUNS / "demo" / SLIDES
    images.mkdir(exist_ok=True)
    plans, palette = parameters.plans(), parameters.palette()
    for slide in parameters.planted(plans):
        path = images / f"{slide.plan.slide_id}.tiff"
        if slide.plan.slide_id in names and not path.exists():
            write_slide(slide, looks(slide, palette), path)
    found = match_images([(name, None) for name in names], find_images(images))
    write_thumbnails(found, audit.folder)
    return write_report(audit, REPORTS / "yes-on-tissue.html")


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
    picture = picture.quantize(COLOURS, kmeans=4, dither=Image.Dither.NONE)
    picture.save(path, optimize=True)


if __name__ == "__main__":
    main()
