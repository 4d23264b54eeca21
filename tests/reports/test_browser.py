"""The report and comparison pages in Chromium, opened from a file without a network."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from PIL import Image

from foci.audits import StoredAudit
from foci.reports import write_comparison, write_report
from foci.reports.models import unpack
from foci.reports.notebook import notebook_html
from foci.reports.text import NOTHING, evidence
from foci.slides.find import INDEX, THUMBNAILS, Thumbnail
from foci.slides.image import Box
from tests.makers.synthetic import HOSTILE, Plan, make
from tests.reports.test_report import data_of

pytest.importorskip("playwright", reason="playwright is not installed")

from playwright.sync_api import Browser, Page, expect
from tools.screenshots import wait_until_drawn

from tests.reports.browser import Watched

Open = Callable[..., Page]
PLAIN = "TCGA-60-4010"
UNPLACED = "TCGA-53-4003"
FIGURES = 8


@pytest.fixture
def visit(browser: Browser, page: Path) -> Iterator[Open]:
    """Open the report; fail at the end if the page logged or fetched anything."""
    opened: list[tuple[Watched, str]] = []

    def go(fragment: str = "", file: Path = page, **context: Any) -> Page:
        tab = browser.new_context(
            **{"viewport": {"width": 1280, "height": 900}, **context}
        ).new_page()
        url = file.as_uri() + fragment
        opened.append((Watched(tab), file.as_uri()))
        tab.goto(url)
        if context.get("java_script_enabled", True):
            wait_until_drawn(tab)
        return tab

    yield go
    for watched, url in opened:
        watched.assert_quiet(url)
        watched.page.context.close()


def rows(tab: Page) -> list[str]:
    return tab.locator("#slides-table tbody th").all_text_contents()


def column(tab: Page, key: str) -> list[str]:
    shown: list[str] = tab.evaluate(
        """(key) => {
            const heads = [...document.querySelectorAll('#slides-table thead tr:last-child th')];
            const at = heads.findIndex((head) => head.dataset.key === key);
            const rows = [...document.querySelectorAll('#slides-table tbody tr')];
            return rows.map((row) => row.cells[at].textContent);
        }""",
        key,
    )
    return shown


def test_it_opens_with_all_figures(visit: Open, audit: StoredAudit) -> None:
    tab = visit()
    assert tab.title() == "abmil <demo> & co: FOCI audit"
    expect(tab.locator("#figures figure")).to_have_count(FIGURES)
    expect(tab.locator("#figures canvas")).to_have_count(4)
    own = audit.answers
    lines = evidence(own)
    plots = tab.locator("td.plot[data-estimate] svg")
    expect(plots).to_have_count(len(lines))
    assert [plot.get_attribute("aria-label") for plot in plots.all()] == [
        f"{line.rankings}, {line.axis}: {line.text}" for line in lines
    ]
    expect(tab.locator("#evidence-scale svg")).to_have_count(1)
    decided = f"{own.n_decided} of {own.n_slides} slides decided"
    expect(tab.locator("#answers .badge")).to_have_text([own.map.answer, decided, own.order.answer])
    for figure in tab.locator("#figures figure").all():
        assert figure.locator("details table tbody tr").count() > 1
        assert "n = " in figure.locator("figcaption").inner_text()


def test_axes_have_names(visit: Open) -> None:
    tab = visit()
    text = tab.locator("#figures").inner_text()
    assert "tiles needed, K" in text
    assert "tiles needed under native" in text
    assert "AUC (label)" in text
    drawn = tab.evaluate(
        """() => [...document.querySelectorAll('.chart canvas')].map((canvas) => {
            const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
            let painted = 0;
            for (let i = 3; i < data.length; i += 4) painted += data[i] > 0;
            return painted / (canvas.width * canvas.height);
        })"""
    )
    assert len(drawn) == 4
    assert min(drawn) > 0.01


def test_slider_moves_cursor_and_tiles(visit: Open) -> None:
    tab = visit(f"#slide={PLAIN}&k=5")
    cursor = tab.locator("#slide-view .cursor-line")
    maps = tab.locator("#slide-view canvas.tiles")
    expect(tab.locator("#k-value")).to_have_text("K = 5")
    expect(cursor).to_have_attribute("data-k", "5")
    before = cursor.bounding_box()
    pictures = [maps.nth(i).evaluate("c => c.toDataURL()") for i in range(2)]
    slider = tab.locator("#k-slider")
    slider.focus()
    for _ in range(3):
        tab.keyboard.press("ArrowRight")
    expect(tab.locator("#k-value")).to_have_text("K = 8")
    expect(cursor).to_have_attribute("data-k", "8")
    after = cursor.bounding_box()
    assert before is not None
    assert after is not None
    assert after["x"] > before["x"] + 10
    for i in range(2):
        assert maps.nth(i).get_attribute("data-k") == "8"
        assert maps.nth(i).evaluate("c => c.toDataURL()") != pictures[i]
    tab.keyboard.press("End")
    expect(tab.locator("#k-value")).to_have_text("K = 256")
    assert "k=256" in tab.url


def test_the_numbers_beside_the_slider_are_the_audit_s(
    visit: Open, audit: StoredAudit, page: Path
) -> None:
    tab = visit(f"#slide={PLAIN}&k=20&left=native&right=selector-1")
    row = [slide.slide_id for slide in audit.slides].index(PLAIN)
    for side, (ranking, seed) in {"left": ("native", None), "right": ("selector", 1)}.items():
        curve = audit.curves.get(ranking, seed)[row]
        p = curve.probs[19, int(curve.full.argmax())]
        shown = tab.locator(f"#read-{side} strong").inner_text()
        assert float(shown.removeprefix("p = ")) == pytest.approx(p, abs=1e-3)
    orders = data_of(page)["details"][str(row)]["orders"]
    first, second = (set(unpack(orders[name])[:20]) for name in ("native", "selector-1"))
    jaccard = len(first & second) / len(first | second)
    expect(tab.locator("#jaccard")).to_contain_text(f"Jaccard {jaccard:.2f}")
    expect(tab.locator("#jaccard")).to_contain_text(f"{len(first & second)} of 20 tiles")


def test_other_rankings_can_be_chosen(visit: Open) -> None:
    tab = visit(f"#slide={PLAIN}&k=9")
    expect(tab.locator("#ranking-left")).to_have_value("native")
    expect(tab.locator("#ranking-right")).to_have_value("selector-0")
    picture = tab.locator("#side-left canvas").evaluate("c => c.toDataURL()")
    tab.locator("#ranking-left").select_option("selector-0")
    expect(tab.locator("#jaccard")).to_contain_text("Jaccard 1.00")
    assert tab.locator("#side-left canvas").evaluate("c => c.toDataURL()") != picture
    assert "left=selector-0" in tab.url


def test_a_slide_without_coordinates_lies_on_a_grid(visit: Open) -> None:
    tab = visit(f"#slide={UNPLACED}")
    expect(tab.locator("#slide-view .note")).to_contain_text("no coordinates")
    expect(tab.locator("#slide-view canvas.tiles")).to_have_count(2)


def test_hovering_names_the_tile(visit: Open) -> None:
    tab = visit(f"#slide={PLAIN}")
    canvas = tab.locator("#side-left canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    hint = tab.locator("#side-left .hint")
    expect(hint).to_be_visible()
    expect(hint).to_contain_text("px")
    expect(hint).to_contain_text("native: ")


def test_hardest_first_and_most_compact_first(visit: Open, page: Path) -> None:
    tab = visit()
    slides = data_of(page)["slides"]
    needed = dict(zip(slides["id"], slides["measures"]["prediction"]["selector"]["k"], strict=True))
    counts = [needed[name] for name in rows(tab)]
    assert counts == sorted(counts, reverse=True)
    hardest = rows(tab)
    tab.locator("#order-compact").click()
    assert rows(tab) == hardest[::-1]
    expect(tab.locator("#order-compact")).to_have_attribute("aria-pressed", "true")


def test_every_column_sorts_both_ways(visit: Open) -> None:
    tab = visit()
    heads = tab.locator("#slides-table th[data-key]")
    keys = [str(key) for key in heads.evaluate_all("heads => heads.map(h => h.dataset.key)")]
    assert keys[:6] == ["id", "case", "label", "predicted", "p", "n"]
    assert len(keys) == 6 + 2 * 3, "the areas are folded away"
    tab.get_by_label("also AUKC and Faithfulness").check()
    keys = [str(key) for key in heads.evaluate_all("heads => heads.map(h => h.dataset.key)")]
    assert len(keys) == 6 + 4 * 3
    for key in keys:
        head = tab.locator(f'th[data-key="{key}"]')
        for direction in ("ascending", "descending"):
            head.locator("button").click()
            assert head.get_attribute("aria-sort") == direction
            if ":" in key or key in "pn":
                missing = (NOTHING, "none")
                defined = [text.strip("> *") for text in column(tab, key) if text not in missing]
                shown = [float(text) for text in defined]
                assert shown == sorted(shown, reverse=direction == "descending")


def test_filters(visit: Open, audit: StoredAudit) -> None:
    tab = visit()
    total = len(audit.slides)
    tab.locator('input[type="search"]').fill("tcga-6")
    assert all(name.startswith("TCGA-6") for name in rows(tab))
    tab.locator('input[type="search"]').fill("")
    tab.locator("#only-wrong").check()
    assert all(text.endswith("✗") for text in column(tab, "predicted"))
    wrong = len(rows(tab))
    assert 0 < wrong < total
    expect(tab.locator(".count")).to_have_text(f"{wrong} of {total} slides")
    tab.locator("#only-wrong").uncheck()
    tab.locator("#only-unreached").check()
    assert set(column(tab, "k:selector")) == {"> 256"}
    tab.locator("#only-unreached").uncheck()
    tab.locator('select[aria-label="Filter by label"]').select_option("LUSC")
    assert set(column(tab, "label")) == {"LUSC"}


def test_the_slide_view_opens_turns_and_closes(visit: Open) -> None:
    tab = visit()
    order = rows(tab)
    tab.locator("#slides-table tbody tr").nth(1).click()
    expect(tab.locator("#slide-name")).to_have_text(order[1])
    assert quote(order[1]) in tab.url or order[1] in tab.url
    tab.locator("#next-slide").click()
    expect(tab.locator("#slide-name")).to_have_text(order[2])
    tab.locator("#previous-slide").click()
    tab.locator("#previous-slide").click()
    expect(tab.locator("#slide-name")).to_have_text(order[0])
    tab.go_back()
    expect(tab.locator("#slide-name")).to_have_text(order[1])
    tab.locator("#close-slide").click()
    expect(tab.locator("#slide-view article")).to_have_count(0)
    assert "#" not in tab.url


def test_everything_can_be_reached_by_keyboard(visit: Open) -> None:
    tab = visit()
    first = tab.locator("#slides-table tbody a").first
    name = first.inner_text()
    first.focus()
    tab.keyboard.press("Enter")
    expect(tab.locator("#slide-name")).to_have_text(name)
    expect(tab.locator("#slide-name")).to_be_focused()
    for _ in range(12):
        tab.keyboard.press("Tab")
        if tab.evaluate("document.activeElement.id") == "k-slider":
            break
    expect(tab.locator("#k-slider")).to_be_focused()
    tab.keyboard.press("Home")
    expect(tab.locator("#k-value")).to_have_text("K = 1")
    outline = tab.locator("#k-slider").evaluate("e => getComputedStyle(e).outlineStyle")
    assert outline == "solid"
    tab.keyboard.press("Escape")
    expect(tab.locator("#slide-view article")).to_have_count(0)
    expect(tab.locator("#slides-table tbody a").first).to_be_focused()
    tab.locator('th[data-key="n"] button').focus()
    tab.keyboard.press("Enter")
    expect(tab.locator('th[data-key="n"]')).to_have_attribute("aria-sort", "ascending")


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_text(visit: Open, name: str) -> None:
    tab = visit(f"#slide={quote(name)}")
    expect(tab.locator("#slide-name")).to_have_text(name)
    assert name in rows(tab)
    assert tab.locator("img").count() == 0
    assert tab.locator("script").count() == 2


def test_the_label_view_changes_numbers_and_figures(visit: Open) -> None:
    tab = visit()
    expect(tab.locator('[data-of-view="prediction"]').first).to_be_visible()
    before = tab.locator("#figures figcaption").first.inner_text()
    tab.locator('input[name="view-curves"][value="label"]').check()
    expect(tab.locator('[data-of-view="prediction"]').first).to_be_hidden()
    expect(tab.locator('[data-of-view="label"]').first).to_be_visible()
    expect(tab.locator('input[name="view-slides"][value="label"]')).to_be_checked()
    assert tab.locator("#figures figcaption").first.inner_text() != before


def test_a_link_to_a_section_leaves_the_slide_open(visit: Open) -> None:
    tab = visit(f"#slide={PLAIN}")
    tab.locator('nav a[href="#numbers"]').click()
    expect(tab.locator("#slide-name")).to_have_text(PLAIN)


def test_light_and_dark(visit: Open) -> None:
    tab = visit(color_scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    assert tab.evaluate(background) == "rgb(20, 23, 28)"
    tab.locator("#theme").click()
    assert tab.evaluate(background) == "rgb(255, 255, 255)"


@pytest.mark.parametrize("width", [390, 600, 768])
def test_a_small_screen_does_not_scroll_sideways(visit: Open, width: int) -> None:
    tab = visit(f"#slide={quote(HOSTILE[1])}", viewport={"width": width, "height": 800})
    expect(tab.locator("#figures canvas").first).to_be_visible()
    expect(tab.locator("#slide-view canvas").first).to_be_visible()
    assert tab.evaluate("document.documentElement.scrollWidth") == width


PIXELS = "canvases => canvases.map(c => c.width / c.getBoundingClientRect().width)"
SHARP = """(drawn) => {
    const canvases = [...document.querySelectorAll('canvas')];
    const ratios = canvases.map((one) => one.width / one.getBoundingClientRect().width);
    return ratios.length === 7 && ratios.every((one) => Math.abs(one / drawn - 1) < 0.01);
}"""


def test_the_page_leaves_the_resolution_of_the_browser_alone(visit: Open) -> None:
    tab = visit(f"#slide={PLAIN}")
    expect(tab.locator("#slide-view canvas.tiles")).to_have_count(2)
    own = "Object.getOwnPropertyDescriptor(window, 'devicePixelRatio').get.toString()"
    assert "[native code]" in tab.evaluate(own)
    assert tab.evaluate("devicePixelRatio") == 1


@pytest.mark.parametrize(("screen", "drawn"), [(1, 2), (1.25, 2), (2, 2), (3, 3)])
def test_charts_and_maps_are_sharp_on_paper_and_screen(
    visit: Open, screen: float, drawn: float
) -> None:
    tab = visit(f"#slide={PLAIN}", device_scale_factor=screen)
    expect(tab.locator("#figures canvas, #slide-view canvas")).to_have_count(7)
    expect(tab.locator("#figures .cursor-line").first).to_be_attached()
    ratios = tab.locator("canvas").evaluate_all(PIXELS)
    assert ratios == pytest.approx([drawn] * 7, rel=0.01)


def test_charts_and_maps_stay_sharp_after_a_zoom(visit: Open) -> None:
    tab = visit(f"#slide={PLAIN}")
    expect(tab.locator("canvas")).to_have_count(7)
    devtools = tab.context.new_cdp_session(tab)
    for zoomed, drawn in ((3, 3), (1, 2), (4, 4)):
        # Chromium tells the page of an emulated zoom only together with another size.
        size = {"width": 1280, "height": 900 + zoomed, "mobile": False}
        devtools.send("Emulation.setDeviceMetricsOverride", {**size, "deviceScaleFactor": zoomed})
        tab.wait_for_function(f"devicePixelRatio === {zoomed}")
        tab.wait_for_function(SHARP, arg=drawn)


def test_lines_can_be_switched_off_and_the_axis_changed(visit: Open) -> None:
    tab = visit()
    figure = tab.locator("#figures figure").filter(has_text="Reveal: how fast")
    canvas = figure.locator("canvas")
    before = canvas.evaluate("c => c.toDataURL()")
    entry = figure.locator("button.legend-entry").first
    entry.click()
    expect(entry).to_have_attribute("aria-pressed", "false")
    assert figure.locator("canvas").evaluate("c => c.toDataURL()") != before
    entry.click()
    figure.get_by_text("log axis").click()
    assert figure.locator("canvas").evaluate("c => c.toDataURL()") != before


def test_without_scripts_there_are_tables(visit: Open) -> None:
    tab = visit(java_script_enabled=False)
    text = tab.locator("body").inner_text()
    assert "Share of slides that need more than K tiles" in text
    assert HOSTILE[0] in text


def test_it_prints_in_light_on_a4(visit: Open, tmp_path: Path) -> None:
    tab = visit(f"#slide={PLAIN}", color_scheme="dark")
    expect(tab.locator("#slide-name")).to_be_visible()
    tab.evaluate("window.addEventListener('beforeprint', () => { window.seen = 0 })")
    pdf = tab.pdf(prefer_css_page_size=True)
    assert pdf.startswith(b"%PDF")
    assert tab.evaluate("window.seen") == 0
    assert tab.evaluate("document.documentElement.dataset.theme") == "dark", "and dark again after"


def test_other_audits_open_too(
    visit: Open, multiclass: StoredAudit, unlabelled: StoredAudit, tmp_path: Path
) -> None:
    from foci.reports import write_report

    tab = visit("#slide=TCGA-56-4006", file=write_report(multiclass, tmp_path / "m.html"))
    expect(tab.locator("#slide-name")).to_have_text("TCGA-56-4006")
    tab.locator('input[name="view-slides"][value="label"]').check()
    expect(tab.locator("#slide-view .facts")).to_contain_text("misclassified")
    tab = visit("#slide=TCGA-54-4004", file=write_report(unlabelled, tmp_path / "u.html"))
    expect(tab.locator("#slide-name")).to_have_text("TCGA-54-4004")
    expect(tab.locator("#figures figure")).to_have_count(FIGURES - 1)
    expect(tab.locator("#only-wrong")).to_have_count(0)


def test_the_comparison_opens(
    visit: Open, audit: StoredAudit, unlabelled: StoredAudit, tmp_path: Path
) -> None:
    page = write_comparison([audit, unlabelled], tmp_path / "compare.html")
    tab = visit(file=page)
    expect(tab.locator("#figures figure")).to_have_count(4)
    expect(tab.locator("#table tbody tr")).to_have_count(2)
    axes = tab.locator("#figures .forest .lane-name").all_text_contents()
    assert any(name.startswith("abmil <demo> & co") for name in axes), "models, not numbers"
    badges = [
        answer
        for own in (audit.answers, unlabelled.answers)
        for answer in (own.map.answer, own.order.answer)
    ]
    expect(tab.locator(".comparison-table .badge")).to_have_text(badges)
    assert tab.locator("#figures svg .point").count() > 0
    tab = visit(file=page, viewport={"width": 390, "height": 800})
    assert tab.evaluate("document.documentElement.scrollWidth") == 390


def test_tiles_lie_on_the_tissue_where_a_picture_is_embedded(visit: Open, tmp_path: Path) -> None:
    pictured = make(tmp_path / "pictured", Plan(n_slides=6, k_max=40))
    folder = pictured.folder / THUMBNAILS
    folder.mkdir()
    Image.new("RGB", (480, 400), (200, 30, 120)).save(folder / "a.jpg")
    place = Thumbnail(
        file="a.jpg", image=tmp_path, how="name", box=Box(1024, 512, 48 * 256, 40 * 256), mpp=0.5
    )
    slide = pictured.curves.slide_ids[5]
    index = '{"%s": %s}' % (slide, place.model_dump_json())  # noqa: UP031 - braces
    (folder / INDEX).write_text(index)
    tab = visit(f"#slide={slide}&k=1", file=write_report(pictured))
    expect(tab.locator("canvas.tiles[data-tissue=shown]")).to_have_count(2)
    pixel = tab.evaluate(
        """() => {
            const canvas = document.querySelector('canvas.tiles');
            const at = [canvas.width / 2, canvas.height / 2].map(Math.round);
            return [...canvas.getContext('2d').getImageData(...at, 1, 1).data];
        }"""
    )
    assert all(abs(a - b) < 12 for a, b in zip(pixel[:3], (200, 30, 120), strict=True)), pixel


def test_the_report_works_in_the_frame_of_a_notebook(
    visit: Open, audit: StoredAudit, tmp_path: Path
) -> None:
    """It has no address and no origin of its own there, so links within it need care."""
    host = tmp_path / "notebook.html"
    host.write_text(f"<!doctype html><meta charset=utf-8>{notebook_html(audit)}", encoding="utf-8")
    tab = visit(file=host)
    frame = tab.frames[1]
    frame.wait_for_url("about:srcdoc")  # a busy machine is slow to begin with it
    expect(tab.frame_locator("iframe").locator(".u-wrap canvas").first).to_be_visible()
    assert frame.locator("#slides-table tbody th").count() == 20
    curves = tab.frame_locator("iframe").locator("#curves")
    expect(curves).not_to_be_in_viewport()
    frame.locator("nav a[href='#curves']").click()
    expect(curves).to_be_in_viewport()
    assert frame.evaluate("location.href") == "about:srcdoc#curves"
    assert frame.evaluate("origin") == "null"
