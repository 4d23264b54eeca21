"""The five screens in Chromium, on slides whose every pixel is known."""

import csv
import shutil
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("playwright", reason="playwright is not installed")

from playwright.sync_api import Browser, Page, expect

from foci.audits import StoredAudit
from foci.viewer.slides import Catalogue
from tests.makers.slides import squares
from tests.reports.browser import findings
from tests.viewer.browsing import PATIENCE, Reader, served
from tests.viewer.conftest import COLUMNS, ROWS, SIDE

expect.set_options(timeout=PATIENCE)
SCREENS = ("cohort", "slide", "disagreement", "gallery", "export")
NATIVE, SELECTOR = "native", "selector-0"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def shown(audit: StoredAudit, image: Path, folder: Path) -> Catalogue:
    """Images of the slides 0, 5, 6 and 7; 7 is there to be broken."""
    paths = {}
    for number in (0, 5, 6, 7):
        paths[audit.curves.slide_ids[number]] = folder / f"slide-{number}.tif"
        shutil.copy(image, folder / f"slide-{number}.tif")
    return Catalogue(audit, paths)


@pytest.fixture(scope="module")
def address(shown: Catalogue, folder: Path) -> Iterator[str]:
    with served(shown, folder / "marks.csv") as address:
        yield address


@pytest.fixture
def reader(browser: Browser, address: str) -> Iterator[Reader]:
    reader = Reader(browser, address)
    yield reader
    reader.close()


@pytest.fixture(scope="module")
def fifth(audit: StoredAudit) -> str:
    return audit.curves.slide_ids[5]


def overlay(tab: Page, at: int = 0) -> str:
    picture: str = tab.locator("canvas.over").nth(at).evaluate("c => c.toDataURL()")
    return picture


def test_the_cohort_shows_answers_dots_and_slides(reader: Reader, audit: StoredAudit) -> None:
    tab = reader.open("cohort")
    assert tab.title() == "abmil <demo> & co: FOCI viewer"
    assert tab.evaluate("location.search") == "", "the token does not stay in the address"
    told = audit.answers
    expect(tab.locator(".answers .badge")).to_have_text(
        [told.map.answer, told.tiles.answer, told.order.answer]
    )
    expect(tab.locator(".slide-dot")).to_have_count(8)
    sure = [curve.full.max() for curve in audit.curves.get(NATIVE)]
    undecided = sum(p < audit.manifest.settings.kappa for p in sure)
    expect(tab.locator(".slide-dot.hollow")).to_have_count(int(undecided))
    names = tab.locator("#slides-table tbody th")
    assert names.all_text_contents() == list(audit.curves.slide_ids)
    shown_p = tab.locator("#slides-table tbody tr td:nth-child(5)").all_text_contents()
    assert shown_p == [f"{p:.3f}" for p in sure]


def test_presets_and_filter_choose_slides(reader: Reader, shown: Catalogue) -> None:
    tab = reader.open("cohort")
    rows = tab.locator("#slides-table tbody th")
    for button in tab.locator("[data-preset]").all():
        button.click()
        expect(button).to_have_attribute("aria-pressed", "true")
        expect(rows).to_have_count(int(button.inner_text().split()[-1]))
    wrong = [shown.audit.curves.slide_ids[6]]
    tab.locator("[data-preset=wrong]").click()
    assert rows.all_text_contents() == wrong
    tab.get_by_label("Filter by slide or patient").fill("nothing like this")
    expect(tab.locator("#slides-table td.empty")).to_contain_text("No slide is like this")
    tab.get_by_label("Filter by slide or patient").fill("")
    rows.first.click()
    expect(tab.locator("#slide-name")).to_have_text(wrong[0])
    expect(tab.locator(".flag").first).to_have_text("misclassified")


def test_tiles_lie_where_they_belong(
    browser: Browser, address: str, audit: StoredAudit, fifth: str
) -> None:
    """The ring of the first tile stands on the pixels of that tile, also after zooming."""
    reader = Reader(browser, address)
    tab = reader.open("slide", fifth, "&k=1")
    truth = squares(COLUMNS, ROWS, SIDE)
    tiles = next(iter(audit.tiles([fifth])))
    assert tiles.coords is not None
    for column, at in ((NATIVE, 0), (SELECTOR, 1)):
        x, y = tiles.coords[tiles.order(column)[0]]
        pixel = under_ring(tab, at)
        assert np.abs(pixel - truth[y + 8, x + 8]).max() < 20, column
    tab.locator(".stage-buttons button").first.click()
    expect(tab.locator(".stage").first).to_have_attribute("data-loaded", "true")
    x, y = tiles.coords[tiles.order(NATIVE)[0]]
    if (found := under_ring(tab, 0, missing_ok=True)) is not None:
        assert np.abs(found - truth[y + 8, x + 8]).max() < 20
    reader.close(quiet=False)  # Chromium advises on the test's own reading of canvases


def under_ring(tab: Page, at: int, missing_ok: bool = False) -> np.ndarray | None:
    """Colour of the slide at the middle of the newest tile's ring."""
    found = tab.evaluate(
        """(at) => {
            const stage = document.querySelectorAll('.stage')[at];
            const over = stage.querySelector('canvas.over');
            const {data, width} = over.getContext('2d').getImageData(0, 0, over.width, over.height);
            let [left, right, top, bottom] = [1e9, -1, 1e9, -1];
            for (let i = 0; i < data.length; i += 4)
                if (data[i] === 179 && data[i + 1] === 36 && data[i + 2] === 91) {
                    const [x, y] = [(i / 4) % width, Math.floor(i / 4 / width)];
                    [left, right] = [Math.min(left, x), Math.max(right, x)];
                    [top, bottom] = [Math.min(top, y), Math.max(bottom, y)];
                }
            if (right < 0) return null;
            const slide = stage.querySelector('.osd canvas');
            const scale = slide.width / over.width;
            const middle = [(left + right) / 2 * scale, (top + bottom) / 2 * scale];
            return [...slide.getContext('2d').getImageData(...middle.map(Math.round), 1, 1).data];
        }""",
        at,
    )
    assert found is not None or missing_ok
    return None if found is None else np.array(found[:3], dtype=float)


SAME_AND_OTHER = """(before) => {
    const slides = [...document.querySelectorAll('.osd canvas')];
    const [first, second] = slides.map((one) => one.toDataURL());
    return first === second && first !== before && first;
}"""
"""The picture that both slides show, once it is the same and another than before."""


def test_both_slides_pan_and_zoom_together(reader: Reader, fifth: str) -> None:
    tab = reader.open("slide", fifth)
    slides = tab.locator(".osd canvas")

    before = slides.first.evaluate("c => c.toDataURL()")
    tab.get_by_label("Zoom in").first.click()
    zoomed = tab.wait_for_function(SAME_AND_OTHER, arg=before).json_value()
    box = slides.nth(1).bounding_box()
    assert box is not None
    tab.mouse.move(box["x"] + 200, box["y"] + 150)
    tab.mouse.down()
    tab.mouse.move(box["x"] + 90, box["y"] + 100, steps=5)
    tab.mouse.up()
    tab.wait_for_function(SAME_AND_OTHER, arg=zoomed)
    assert "zoom=" in tab.url


def test_one_slider_moves_tiles_curve_and_numbers(
    reader: Reader, audit: StoredAudit, fifth: str
) -> None:
    tab = reader.open("slide", fifth, "&k=5")
    curves = {name: audit.curves.get(*name)[5] for name in ((NATIVE, None), ("selector", 0))}

    def shown_p() -> list[str]:
        return [
            head.locator("span").nth(1).inner_text() for head in tab.locator(".stage-head").all()
        ]

    def measured(k: int) -> list[str]:
        target = int(curves[NATIVE, None].full.argmax())
        return [f"p = {curve.probs[curve.ks == k, target][0]:.3f}" for curve in curves.values()]

    for key, k in (
        (None, 5), ("ArrowRight", 6), ("Shift+ArrowRight", 12), ("ArrowLeft", 11),
        ("Shift+ArrowLeft", 5), ("Home", 1), ("End", 64),
    ):  # fmt: skip
        before = overlay(tab)
        if key:
            tab.locator("body").press(key)
        expect(tab.locator("#k-value")).to_have_text(f"K = {k}")
        assert shown_p() == measured(k)
        assert key is None or overlay(tab) != before
    tab.locator("body").press("Home")
    cursor, slider = (tab.locator(name).bounding_box() for name in (".cursor-line", "#k-slider"))
    assert cursor is not None
    assert slider is not None
    assert abs(cursor["x"] - (slider["x"] + 9)) < 3, "K = 1 lies under K = 1"
    tab.locator("body").press("End")
    cursor = tab.locator(".cursor-line").bounding_box()
    assert cursor is not None
    assert abs(cursor["x"] - (slider["x"] + slider["width"] - 9)) < 3, "and the last under the last"


def test_space_plays_and_pauses(reader: Reader, fifth: str) -> None:
    tab = reader.open("slide", fifth, "&k=1")
    tab.locator("body").press(" ")
    expect(tab.locator("#play")).to_have_text("❚❚ Pause")
    expect(tab.locator("#k-value")).not_to_have_text("K = 1")
    tab.locator("body").press(" ")
    expect(tab.locator("#play")).to_have_text("▶ Play")
    paused = tab.locator("#k-value").inner_text()
    tab.wait_for_timeout(500)
    expect(tab.locator("#k-value")).to_have_text(paused)


def test_disagreement_counts_tiles_apart(reader: Reader, audit: StoredAudit, fifth: str) -> None:
    tab = reader.open("disagreement", fifth, f"&k=20&left={NATIVE}&right={SELECTOR}")
    tiles = next(iter(audit.tiles([fifth])))
    first, second = (set(tiles.order(name)[:20].tolist()) for name in (NATIVE, SELECTOR))
    expect(tab.locator("[data-part=a]")).to_have_text(f"A only {len(first - second)}")
    expect(tab.locator("[data-part=b]")).to_have_text(f"B only {len(second - first)}")
    expect(tab.locator("[data-part=both]")).to_have_text(f"both {len(first & second)}")
    shares = len(first & second) / len(first | second)
    expect(tab.locator(".disagreement-screen table")).to_contain_text(f"{shares:.2f}")
    before = overlay(tab)
    tab.locator("#ranking-right").select_option(NATIVE)
    expect(tab.locator(".note")).to_contain_text("the same ranking")
    assert overlay(tab) != before


def test_the_gallery_shows_first_tiles_in_order(
    reader: Reader, audit: StoredAudit, fifth: str
) -> None:
    tab = reader.open("gallery", fifth, "&k=16")
    tiles = next(iter(audit.tiles([fifth])))
    images = tab.locator(".pictures img")
    expect(images).to_have_count(16)
    for rank, tile in enumerate(tiles.order(NATIVE)[:16], 1):
        label = images.nth(rank - 1).get_attribute("alt")
        assert label is not None
        assert label.startswith(f"Rank {rank}, tile {tile},")
    deleted = audit.curves.get(NATIVE, None, "delete")[5]
    target = int(deleted.full.argmax())
    drop = deleted.full[target] - deleted.probs[deleted.ks == 16, target][0]
    sign = "\N{MINUS SIGN}" if round(drop, 3) < 0 else ""
    expect(tab.locator(".caption").nth(15)).to_have_text(f"#16 Δp {sign}{abs(drop):.3f}")
    expect(tab.locator("#gallery-b")).to_have_text("Bselector-0")
    before = overlay(tab)
    images.nth(3).hover()
    assert overlay(tab) != before, "the slide rings the tile under the pointer"
    tab.locator("#gallery-b").click()
    expect(images.first).to_have_attribute(
        "alt",
        f"Rank 1, {images.first.get_attribute('alt').split(', ', 1)[1]}",  # type: ignore[union-attr]
    )
    assert (
        int(tab.locator(".pictures li").first.get_attribute("data-tile") or -1)
        == (tiles.order(SELECTOR)[0])
    )


def test_a_blinded_reader_leaves_marks(
    reader: Reader, audit: StoredAudit, fifth: str, folder: Path
) -> None:
    tab = reader.open("gallery", fifth, "&k=4")
    tab.get_by_text("Reader study").click()
    tab.get_by_label("hide the rankings").check()
    tiles = next(iter(audit.tiles([fifth])))
    firsts = {name: tiles.order(name)[:4].tolist() for name in (NATIVE, SELECTOR)}
    union = set(firsts[NATIVE]) | set(firsts[SELECTOR])
    cells = tab.locator(".pictures li")
    expect(cells).to_have_count(len(union))
    expect(tab.locator("#ranking-left")).to_be_hidden()
    assert "#1" not in tab.locator(".pictures").inner_text()
    cells.first.get_by_role("button", name="relevant", exact=True).click()
    expect(tab.locator("#marks-said")).to_have_text("Who is reading? Enter a name first.")
    tab.locator("#reader").fill("R1")
    cells.first.get_by_role("button", name="relevant", exact=True).click()
    expect(tab.locator("#marks-said")).to_have_text("1 tile of this slide marked.")
    tile = int(cells.first.get_attribute("data-tile") or -1)
    with (folder / "marks.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(row["ranking"], int(row["rank"])) for row in rows} == {
        (name, firsts[name].index(tile) + 1) for name in firsts if tile in firsts[name]
    }
    assert {row["blinded"] for row in rows} == {"1"}


def test_exports_are_of_what_is_on_the_screen(reader: Reader, fifth: str, tmp_path: Path) -> None:
    tab = reader.open("export", fifth, f"&k=6&left={NATIVE}&right={SELECTOR}")

    def saved(button: str) -> bytes:
        with tab.expect_download(timeout=PATIENCE) as found:
            tab.locator(button).click()
        found.value.save_as(tmp_path / "file")
        return (tmp_path / "file").read_bytes()

    assert saved("#view-png").startswith(b"\x89PNG")
    drawn = ElementTree.fromstring(saved("#view-svg"))
    space = "{http://www.w3.org/2000/svg}"
    panels = drawn.findall(f"{space}svg")
    assert [len(panel.findall(f"{space}rect[@stroke]")) for panel in panels] == [6, 6]
    assert all(panel.find(f"{space}text").text.endswith("µm") for panel in panels)  # type: ignore[union-attr]
    assert all(panel.find(f"{space}image") is not None for panel in panels)
    rows = list(csv.DictReader(saved("#csv").decode().splitlines()))
    assert [(row["ranking"], int(row["rank"])) for row in rows] == [
        (name, rank) for name in (NATIVE, SELECTOR) for rank in range(1, 7)
    ]
    assert b"FOCI selector-0" in saved("#geojson-b")
    link = tab.locator("#deep-link").input_value()
    again = reader.open(*link.split("#screen=")[1].split("&slide=")[:1], fifth, "&k=6")
    expect(again.locator("#k-value")).to_have_text("K = 6")


def test_a_slide_that_breaks_says_so_in_place(
    browser: Browser, address: str, audit: StoredAudit, folder: Path, fifth: str
) -> None:
    reader = Reader(browser, address)
    tab = reader.open("slide", audit.curves.slide_ids[7])
    (folder / "slide-7.tif").unlink()
    for _ in range(3):
        tab.get_by_label("Zoom in").first.click()
    expect(tab.locator(".stage .trouble").first).to_contain_text("slide-7.tif: has vanished")
    tab.locator("body").press("End")
    expect(tab.locator("#k-value")).to_have_text("K = 64")
    tab.reload()
    expect(tab.locator(".stage .trouble").first).to_contain_text("shown without tissue")
    other = reader.open("slide", fifth)
    expect(other.locator(".stage .trouble").first).to_be_hidden()
    reader.close(quiet=False)


@pytest.mark.parametrize(("number", "said"), [(3, "has no coordinates"), (4, None), (2, None)])
def test_without_an_image_the_lattice_is_shown(
    reader: Reader, audit: StoredAudit, number: int, said: str | None
) -> None:
    name = audit.curves.slide_ids[number]
    for screen in SCREENS[1:] if number == 2 else SCREENS[1:2]:
        tab = reader.open(screen, name)
        expect(tab.locator("#slide-name")).to_have_text(name)
        painted = tab.locator("canvas.over").first.evaluate(
            "c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some((v) => v > 0)"
        )
        assert painted
    if said:
        expect(reader.open("slide", name).locator(".note")).to_contain_text(said)


def test_hostile_names_are_text(reader: Reader, audit: StoredAudit) -> None:
    opened = [("cohort", 0), *((screen, 0) for screen in SCREENS[1:]), ("slide", 1), ("slide", 2)]
    for screen, number in opened:
        name = audit.curves.slide_ids[number]
        tab = reader.open(screen, name)
        if screen != "cohort":
            expect(tab.locator("#slide-name")).to_have_text(name)
        assert tab.locator("script").count() == 1
        assert tab.locator("img[src=x]").count() == 0


def test_unknown_slides_and_lost_tokens_say_so(
    browser: Browser, address: str, reader: Reader
) -> None:
    tab = reader.browser.new_context().new_page()
    tab.goto(address)
    assert "it carries the token" in tab.content()
    tab.context.close()
    other = reader.open("cohort")
    other.goto(f"{other.url.partition('#')[0]}#screen=slide&slide=nobody")
    expect(other.locator(".trouble")).to_have_text("This audit has no slide nobody.")


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (1440, "dark"), (390, "light")])
def test_nothing_serious_for_axe(reader: Reader, fifth: str, width: int, scheme: str) -> None:
    for screen in SCREENS:
        tab = reader.open(
            screen, fifth, viewport={"width": width, "height": 844}, color_scheme=scheme
        )
        assert findings(tab) == [], screen
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, screen
