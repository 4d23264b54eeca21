"""Screenshots of HTML pages, taken with the Chromium of this machine.

``screenshot`` takes one picture. On the command line, every page at four widths, light and dark::

    python -m tools.screenshots AUDIT/report.html --out pictures
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
)  # fmt: skip
WIDTHS = (1440, 1280, 768, 390)
_DRAWN = """async () => {
    await document.fonts.ready;
    const charts = [...document.querySelectorAll('.chart')].filter((one) => one.clientWidth > 0);
    if (!charts.every((one) => one.querySelector('canvas'))) return false;
    await new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)));
    return true;
}"""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Launch the first Chromium on the path, headless."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        raise FileNotFoundError(f"no browser on this machine (looked for {', '.join(NAMES)})")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


def screenshot(
    page: str | Path,
    png: str | Path,
    *,
    width: int = 1280,
    dark: bool = False,
    height: int | None = None,
    selector: str | None = None,
    browser: Browser | None = None,
) -> Path:
    """Save a picture of an HTML page, or of one element of it, as PNG.

    Args:
        page: An HTML file, with a fragment after ``#`` if one is wanted, or an address.
        png: The picture to write; its folder is made if it is missing.
        width: Width of the window in CSS pixels.
        dark: Whether the system prefers a dark theme.
        height: Height of the picture from the top of the page; None for the whole page.
        selector: CSS selector of one element to picture instead of the page.
        browser: A browser from :func:`chromium` to use for many pictures; None starts one.

    Returns:
        Path of the picture.
    """
    if browser is None:
        with chromium() as own:
            return screenshot(
                page, png, width=width, dark=dark, height=height, selector=selector, browser=own
            )
    path = Path(png)
    path.parent.mkdir(parents=True, exist_ok=True)
    context = browser.new_context(
        viewport={"width": width, "height": height or 900},
        device_scale_factor=2 if width < 500 else 1,
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
    )
    try:
        tab = context.new_page()
        tab.goto(_address(page))
        wait_until_drawn(tab)
        if selector is None:
            tab.screenshot(path=path, full_page=height is None)
        else:
            tab.locator(selector).first.screenshot(path=path)
    finally:
        context.close()
    return path


def screenshots(page: str | Path, folder: str | Path) -> list[Path]:
    """Save the whole page at every width of :data:`WIDTHS`, light and dark."""
    name = Path(str(page).partition("#")[0]).stem
    with chromium() as browser:
        return [
            screenshot(
                page,
                Path(folder) / f"{name}-{width}-{'dark' if dark else 'light'}.png",
                width=width,
                dark=dark,
                browser=browser,
            )
            for width in WIDTHS
            for dark in (False, True)
        ]


def _address(page: str | Path) -> str:
    text = str(page)
    if "://" in text:
        return text
    file, hash_sign, fragment = text.partition("#")
    return Path(file).resolve().as_uri() + hash_sign + fragment


def wait_until_drawn(tab: Page) -> None:
    """Wait for fonts and for every chart that is visible; they draw after the page has loaded."""
    tab.wait_for_load_state("load")
    tab.wait_for_function(_DRAWN)


def main() -> None:
    """Take all pictures of the pages that are named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("pages", nargs="+", help="HTML files")
    parser.add_argument("--out", default="screenshots", help="folder for the pictures")
    given = parser.parse_args()
    for page in given.pages:
        for path in screenshots(page, given.out):
            sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
