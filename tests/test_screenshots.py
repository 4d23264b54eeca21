"""Screenshots of pages: size, theme, one element."""

from pathlib import Path

import pytest
from PIL import Image

pytest.importorskip("playwright", reason="playwright is not installed")

from tools.screenshots import screenshot

from tests.reports.browser import open_browser

PAGE = """<!doctype html><html lang="en"><title>t</title><style>
body { margin: 0; height: 1500px; background: rgb(255, 255, 255) }
@media (prefers-color-scheme: dark) { body { background: rgb(10, 20, 30) } }
i { display: block; width: 40px; height: 30px; background: rgb(200, 0, 0) }
</style><i></i>"""


def test_a_page_becomes_a_picture_of_the_asked_width_and_theme(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(PAGE)
    with open_browser() as browser:
        whole = screenshot(page, tmp_path / "new" / "a.png", width=768, browser=browser)
        dark = screenshot(
            f"{page}#part", tmp_path / "b.png", width=390, dark=True, height=600, browser=browser
        )
        part = screenshot(page, tmp_path / "c.png", selector="i", browser=browser)
    with Image.open(whole) as picture:
        assert picture.size == (768, 1500), "the whole page"
        assert picture.convert("RGB").getpixel((700, 1400)) == (255, 255, 255)
    with Image.open(dark) as picture:
        assert picture.size == (780, 1200), "a phone has two pixels per CSS pixel"
        assert picture.convert("RGB").getpixel((700, 1100)) == (10, 20, 30)
    with Image.open(part) as picture:
        assert picture.size == (40, 30)
        assert picture.convert("RGB").getpixel((5, 5)) == (200, 0, 0)
