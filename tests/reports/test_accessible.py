"""Report and comparison without serious findings of axe-core; keyboard, touch, contrast."""

import re
from pathlib import Path
from typing import Any

import pytest

from foci.audits import StoredAudit
from foci.reports import write_comparison
from foci.words import COLOURS

pytest.importorskip("playwright", reason="playwright is not installed")

from playwright.sync_api import expect

from tests.makers.colours import contrast, luminance
from tests.reports.browser import AXE, THEMES, Open, findings

SLIDE = "TCGA-60-4010"


@pytest.fixture(scope="module")
def comparison(
    audit: StoredAudit, unlabelled: StoredAudit, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    return write_comparison([audit, unlabelled], tmp_path_factory.mktemp("c") / "compare.html")


def of_width(width: int, *, dark: bool = False) -> dict[str, Any]:
    """How a browser of this width is opened; a narrow one is a phone."""
    return {
        "viewport": {"width": width, "height": 900},
        "color_scheme": "dark" if dark else "light",
        "has_touch": width < 500,
    }


@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed (npm ci in web/)")
@pytest.mark.parametrize(("width", "dark"), THEMES)
@pytest.mark.parametrize("which", ["page", "comparison"])
def test_axe_finds_nothing_serious(
    visit: Open, request: pytest.FixtureRequest, which: str, width: int, dark: bool
) -> None:
    more = f"#slide={SLIDE}" if which == "page" else ""
    tab = visit(more, request.getfixturevalue(which), **of_width(width, dark=dark))
    expect(tab.locator("svg.own").first).to_be_visible()
    tab.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true })")
    if which == "page":
        expect(tab.locator("#figures figure").first).to_be_visible()
    assert findings(tab) == []
    assert tab.evaluate("document.documentElement.scrollWidth") == width


def test_tiles_are_selected_by_keyboard(visit: Open) -> None:
    tab = visit(f"#slide={SLIDE}&k=5")
    canvas, hint = tab.locator("#side-left canvas"), tab.locator("#side-left .hint")
    canvas.focus()
    tab.keyboard.press("Home")
    expect(hint).to_contain_text("native: rank 1")
    first = hint.inner_text()
    other = tab.locator("#side-right canvas").evaluate("c => c.toDataURL()")
    tab.keyboard.press("ArrowDown")
    expect(hint).not_to_have_text(first)
    assert tab.locator("#side-right canvas").evaluate("c => c.toDataURL()") != other, "on both maps"
    tab.keyboard.press("Escape")
    expect(hint).to_be_hidden()
    expect(tab.locator("#slide-view article")).to_have_count(1)
    tab.keyboard.press("Escape")
    expect(tab.locator("#slide-view article")).to_have_count(0)


def test_tiles_are_selected_by_touch(visit: Open) -> None:
    tab = visit(f"#slide={SLIDE}&k=5", **of_width(390))
    canvas = tab.locator("#side-left canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    canvas.tap(position={"x": box["width"] / 2, "y": box["height"] / 2})
    expect(tab.locator("#side-left .hint")).to_contain_text("native: ")


@pytest.mark.parametrize("width", [1280, 390])
def test_the_slider_lies_under_its_count(visit: Open, width: int) -> None:
    """The middle of the thumb is at the same place as the cursor in the chart, at every count."""
    tab = visit(f"#slide={SLIDE}&k=1", **of_width(width))
    slider, cursor = tab.locator("#k-slider"), tab.locator("#slide-view .cursor-line")
    slider.focus()
    for key in ("Home", "PageUp", "ArrowRight", "PageUp", "PageUp", "ArrowLeft", "End"):
        tab.keyboard.press(key)
        line, box = cursor.bounding_box(), slider.bounding_box()
        assert line is not None
        assert box is not None
        share = slider.evaluate("e => (e.value - e.min) / (e.max - e.min)")
        thumb = box["x"] + 9 + share * (box["width"] - 18)
        assert thumb == pytest.approx(line["x"] + 1, abs=1.5), key


@pytest.mark.parametrize("dark", [False, True])
def test_outlines_of_tiles_stand_out(visit: Open, dark: bool) -> None:
    tab = visit(**of_width(1280, dark=dark))
    colours = tab.evaluate(
        """() => ['--outline', '--panel', '--page'].map((name) => {
            const probe = document.createElement('i');
            probe.style.setProperty('color', `var(${name})`);
            document.body.append(probe);
            return getComputedStyle(probe).color;
        })"""
    )
    shares = [[int(part) / 255 for part in re.findall(r"\d+", colour)[:3]] for colour in colours]
    outline, *grounds = map(luminance, shares)
    assert all(contrast(outline, ground) >= 3 for ground in grounds)


def test_a_filter_to_nothing_says_so(visit: Open) -> None:
    tab = visit()
    tab.locator('input[type="search"]').fill("no such slide")
    expect(tab.locator("#gallery .slide-card")).to_have_count(0)
    expect(tab.locator(".count")).to_have_text("None of the 20 slides fits")
    tab.locator('input[type="search"]').fill("")
    expect(tab.locator(".count")).to_have_text("20 slides")


@pytest.mark.parametrize("dark", [False, True])
def test_one_palette(visit: Open, dark: bool) -> None:
    """The style sheet has the colours that exports, viewer and GeoJSON take."""
    tab = visit(**of_width(1280, dark=dark))
    shown = tab.evaluate(
        """(n) => Array.from({length: n}, (_, i) =>
            getComputedStyle(document.documentElement).getPropertyValue(`--ink-${i}`).trim())""",
        len(COLOURS),
    )
    assert shown == [colours[dark] for colours in COLOURS.values()]
