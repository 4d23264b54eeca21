"""The three screens in Chromium, on slides whose every pixel is known."""

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
from foci.viewer.marks import MarkBook
from foci.viewer.slides import Catalogue
from foci.words import colour_of
from tests.makers.slides import squares
from tests.reports.browser import findings
from tests.viewer.browsing import PATIENCE, Reader, served
from tests.viewer.conftest import COLUMNS, ROWS, SIDE

expect.set_options(timeout=PATIENCE)
SCREENS = ("slides", "slide", "study")
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
    tab = reader.open("slides")
    assert tab.title() == "abmil <demo> & co: FOCI viewer"
    assert tab.evaluate("location.search") == "", "the token does not stay in the address"
    told = audit.answers
    expect(tab.locator(".answers .badge")).to_have_text(
        [
            told.map.answer,
            told.tiles.answer,
            told.order.answer.replace("headroom", "a better order exists"),
        ]
    )
    needed = audit.measured().of(NATIVE).with_decisive
    assert needed is not None
    assert tab.locator("#slides-table tbody tr td:nth-child(7)").all_text_contents() == [
        "none" if np.isnan(k) else f"{k:g}" for k in needed.decisive[0]
    ]
    expect(tab.locator(".slide-dot")).to_have_count(8)
    sure = [curve.full.max() for curve in audit.curves.get(NATIVE)]
    undecided = sum(p < audit.manifest.settings.kappa for p in sure)
    expect(tab.locator(".slide-dot.hollow")).to_have_count(int(undecided))
    names = tab.locator("#slides-table tbody th")
    assert names.all_text_contents() == list(audit.curves.slide_ids)
    shown_p = tab.locator("#slides-table tbody tr td:nth-child(5)").all_text_contents()
    assert shown_p == [f"{p:.3f}" for p in sure]


def test_presets_and_filter_choose_slides(reader: Reader, shown: Catalogue) -> None:
    tab = reader.open("slides")
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
    const slides = [...document.querySelectorAll('.osd canvas')]
        .filter((one) => !one.closest('.navigator'));
    const [first, second] = slides.map((one) => one.toDataURL());
    return first === second && first !== before && first;
}"""
"""The picture that both slides show, once it is the same and another than before."""


def test_both_slides_pan_and_zoom_together(reader: Reader, fifth: str) -> None:
    tab = reader.open("slide", fifth)
    slides = tab.locator(".osd .openseadragon-canvas > canvas:not(.navigator *)")

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
    tab.locator("#seen-only").click()

    def said() -> list[str]:
        return tab.locator(".stage-head .decision").all_inner_texts()

    def measured(k: int) -> list[str]:
        found = []
        for curve in curves.values():
            (row,) = curve.probs[curve.ks == k]
            name = audit.manifest.classes[int(row.argmax())]
            flips = "" if row.argmax() == curve.full.argmax() else ": the decision flips"
            found.append(f"{name}, p = {row.max():.3f}{flips}")
        return found

    for key, k in (
        (None, 5), ("ArrowRight", 6), ("Shift+ArrowRight", 12), ("ArrowLeft", 11),
        ("Shift+ArrowLeft", 5), ("Home", 1), ("End", 64),
    ):  # fmt: skip
        before = overlay(tab)
        if key:
            tab.locator("body").press(key)
        expect(tab.locator("#k-value")).to_have_text(f"K = {k}")
        assert said() == measured(k)
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


def test_disagreement_is_a_switch_on_the_slide(
    reader: Reader, audit: StoredAudit, fifth: str
) -> None:
    tab = reader.open("slide", fifth, f"&k=20&left={NATIVE}&right={SELECTOR}")
    tiles = next(iter(audit.tiles([fifth])))
    first, second = (set(tiles.order(name)[:20].tolist()) for name in (NATIVE, SELECTOR))
    before = [overlay(tab, at) for at in (0, 1)]
    tab.get_by_label("where A and B differ").check()
    expect(tab.locator(".apart")).to_contain_text(
        f"A only {len(first - second)} · B only {len(second - first)} · both {len(first & second)}"
    )
    assert all(overlay(tab, at) != before[at] for at in (0, 1))
    tab.locator("body").press("Home")
    same = len(set(tiles.order(NATIVE)[:1]) & set(tiles.order(SELECTOR)[:1]))
    expect(tab.locator(".apart")).to_contain_text(f"A only {1 - same} ")
    tab.locator("body").press("End")
    tab.get_by_label("where A and B differ").uncheck()
    expect(tab.locator(".apart")).to_have_text("")


def painted(tab: Page, at: int = 0) -> dict[str, int]:
    """How many pixels of a slide's tiles have each colour."""
    found: dict[str, int] = (
        tab.locator("canvas.over")
        .nth(at)
        .evaluate(
            """(canvas) => {
            const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
            const found = {};
            for (let i = 0; i < data.length; i += 4) {
                const key = [...data.slice(i, i + 4)].join(' ');
                found[key] = (found[key] ?? 0) + 1;
            }
            return found;
        }"""
        )
    )
    return found


def test_tiles_are_outlined_in_the_rankings_colour_and_hidden_by_a_key(
    browser: Browser, address: str, fifth: str
) -> None:
    reader = Reader(browser, address)
    tab = reader.open("slide", fifth, f"&k=20&left={NATIVE}&right={SELECTOR}")
    for at, name in enumerate((NATIVE, "selector")):
        line = " ".join(str(part) for part in (*bytes.fromhex(colour_of(name)[1:]), 255))
        assert painted(tab, at)[line] > 100, "outlined in the ranking's own colour"
    clear = painted(tab)["0 0 0 0"]
    tab.get_by_role("checkbox", name="heat map").check()
    heat = painted(tab)
    tab.locator("#opacity").fill("20")
    half = {key.split()[3] for key in painted(tab)}
    assert "51" in half, "20 % of 255"
    tab.locator("body").press("h")
    hidden = painted(tab)
    tab.locator("body").press("h")
    outlines, over_all = (hidden["0 0 0 0"] - n for n in (clear, heat["0 0 0 0"]))
    assert outlines > 0, "nothing but the scale bar is left"
    n_tiles = int(
        tab.evaluate("document.querySelector('.slide-bar .facts').innerText.match(/all (\\d+)/)[1]")
    )
    assert over_all > 0.8 * outlines * n_tiles / 20, "the map lies over every tile"
    assert painted(tab)["0 0 0 0"] < clear
    reader.close(quiet=False)


def test_the_point_where_the_decision_flips(reader: Reader, audit: StoredAudit, fifth: str) -> None:
    tiles = next(iter(audit.tiles([fifth])))
    for seed, (name, letter) in enumerate(((NATIVE, "a"), (SELECTOR, "b"))):
        deleted = audit.curves.get(name.split("-")[0], 0 if seed else None, "delete")[5]
        target = int(deleted.full.argmax())
        flipped = np.flatnonzero(deleted.probs.argmax(axis=1) != target)
        tab = reader.open("slide", fifth, f"&k=2&left={NATIVE}&right={SELECTOR}")
        button = tab.locator(f"#flip-{letter}")
        if not len(flipped):
            expect(button).to_have_text(f"{letter.upper()}: decision survives")
            expect(button).to_be_disabled()
            continue
        k = int(deleted.ks[flipped[0]])
        expect(button).to_have_text(f"{letter.upper()}: flips at {k}")
        button.click()
        expect(tab.locator("#k-value")).to_have_text(f"K = {min(k, 64)}")
        expect(tab.locator("#seen-without")).to_have_attribute("aria-pressed", "true")
        other = audit.manifest.classes[int(deleted.probs[flipped[0]].argmax())]
        said = tab.locator(".stage-head").nth(seed).locator(".decision")
        if k <= 64:
            expect(said).to_have_text(
                f"{other}, p = {deleted.probs[flipped[0]].max():.3f}: the decision flips"
            )
            expect(tab.locator(".pictures li")).to_have_count(k + 1)
            expect(tab.locator(".pictures li").nth(k)).to_have_text("decision flips here")
        assert (
            int(tab.locator(".pictures li").first.get_attribute("data-tile") or -1)
            == (tiles.order(name)[0])
        )


def test_pictures_of_the_first_tiles_in_order(
    reader: Reader, audit: StoredAudit, fifth: str
) -> None:
    tab = reader.open("slide", fifth, "&k=16")
    tiles = next(iter(audit.tiles([fifth])))
    images = tab.locator(".pictures img")
    expect(images).to_have_count(16)
    for rank, tile in enumerate(tiles.order(NATIVE)[:16], 1):
        label = images.nth(rank - 1).get_attribute("alt")
        assert label is not None
        assert label.startswith(f"Rank {rank}, tile {tile},")
    deleted = audit.curves.get(NATIVE, None, "delete")[5]
    left = float(deleted.probs[deleted.ks == 16, int(deleted.full.argmax())][0])
    bar = tab.locator(".running").nth(15)
    assert bar.get_attribute("title") == f"p = {left:.3f} without the first 16 tiles"
    whole, filled = (bar.bounding_box(), bar.locator("span").bounding_box())
    assert whole is not None
    assert filled is not None
    assert abs(filled["width"] / whole["width"] - left) < 0.03
    before = overlay(tab)
    images.nth(3).hover()
    assert overlay(tab) != before, "the slide rings the tile under the pointer"
    images.nth(3).click()
    large = tab.locator(".tile-dialog img")
    expect(large).to_be_visible()
    expect(large).to_have_js_property("naturalWidth", 1024)
    tab.locator(".tile-dialog .close").click()
    expect(large).to_have_count(0)
    tab.locator("#tiles-b").click()
    first = tab.locator(".pictures li").first
    expect(first).to_have_attribute("data-tile", str(tiles.order(SELECTOR)[0]))


def test_the_list_of_slides_has_thumbnails(reader: Reader, audit: StoredAudit, fifth: str) -> None:
    tab = reader.open("slide", fifth)
    names = tab.locator(".slide-list .list-name")
    assert names.all_text_contents() == list(audit.curves.slide_ids)
    expect(tab.locator(".slide-list [aria-current]")).to_contain_text(fifth)
    expect(tab.locator(".slide-list img")).to_have_count(4)
    tab.locator(".slide-list a").nth(6).click()
    expect(tab.locator("#slide-name")).to_have_text(audit.curves.slide_ids[6])


def test_the_whole_slide_is_in_view_on_opening_and_powers_zoom(reader: Reader, fifth: str) -> None:
    tab = reader.open("slide", fifth)
    expect(tab.locator(".navigator").first).to_be_visible()
    found = tab.wait_for_function(
        """() => new URLSearchParams(location.hash.slice(1)).get('zoom') ?? 'whole'"""
    ).json_value()
    assert found == "whole" or float(found) <= 1.0
    for power in (5, 40):
        tab.get_by_label(f"Magnification {power}").first.click()
        # 0.5 micrometres per pixel: 40x shows an image pixel on two of the screen
        zoom = power * 0.5 / 10 * COLUMNS * SIDE
        width = tab.locator(".stage").first.bounding_box()
        assert width is not None
        tab.wait_for_function(
            "(want) => Math.abs(new URLSearchParams(location.hash.slice(1)).get('zoom') - want)"
            " < 0.02 * want",
            arg=zoom / (width["width"] - 2 - 44),  # without frame and buttons
        )


def test_a_blinded_study_from_the_first_tile_to_the_file(
    reader: Reader, audit: StoredAudit, shown: Catalogue, folder: Path
) -> None:
    tab = reader.open("study")
    tab.locator("#begin").click()
    expect(tab.locator("#study-said")).to_have_text("Who is reading? Enter a name first.")
    tab.locator("#reader").fill("R1")
    tab.locator("#first").fill("2")
    tab.locator("#begin").click()
    plan = MarkBook(folder / "none.csv").study(shown, "R1", 2).tiles
    expect(tab.locator("#study-progress")).to_have_text(f"Tile 1 of {len(plan)}")
    assert "native" not in tab.locator("main").inner_text()
    assert "selector" not in tab.locator("main").inner_text()
    tab.get_by_role("button", name="stroma").click()
    expect(tab.locator("#study-progress")).to_have_text(f"Tile 2 of {len(plan)}")
    tab.locator("body").press("1")
    expect(tab.locator("#study-progress")).to_have_text(f"Tile 3 of {len(plan)}")
    tab.locator("#own-label").fill("necrosis")
    tab.locator("#own-label").press("Enter")
    expect(tab.locator("#study-said")).to_have_text(f"Saved: necrosis. {len(plan) - 3} to go.")
    with (folder / "marks.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["label"] for row in rows] == ["stroma", "tumour", "necrosis"]
    assert [(row["slide_id"], int(row["tile"])) for row in rows] == [
        (audit.curves.slide_ids[one.slide], int(shown.tiles(one.slide).tiles[one.tile]))
        for one in plan[:3]
    ]
    assert not any("rank" in column for column in rows[0]), "blind until the end"
    again = reader.open("study")
    again.locator("#reader").fill("R1")
    again.locator("#first").fill("2")
    again.locator("#begin").click()
    expect(again.locator("#study-progress")).to_have_text(f"Tile 4 of {len(plan)}")
    again.get_by_text("When all readers are done").click()
    with again.expect_download(timeout=PATIENCE) as found:
        again.locator("#results").click()
    results = list(csv.DictReader(found.value.path().read_text().splitlines()))
    order = shown.tiles(plan[0].slide).order(NATIVE)
    assert int(results[0]["rank:native"]) == order.tolist().index(plan[0].tile) + 1


def test_exports_are_of_what_is_on_the_screen(reader: Reader, fifth: str, tmp_path: Path) -> None:
    tab = reader.open("slide", fifth, f"&k=6&left={NATIVE}&right={SELECTOR}")
    tab.locator("#export summary").click()

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
    expect(other.locator(".slide-list .no-thumbnail")).to_have_count(5)
    reader.close(quiet=False)
    shutil.copy(folder / "slide-6.tif", folder / "slide-7.tif")


@pytest.mark.parametrize(("number", "said"), [(3, "has no coordinates"), (4, None), (2, None)])
def test_without_an_image_the_lattice_is_shown(
    reader: Reader, audit: StoredAudit, number: int, said: str | None
) -> None:
    name = audit.curves.slide_ids[number]
    tab = reader.open("slide", name)
    expect(tab.locator("#slide-name")).to_have_text(name)
    assert tab.locator("canvas.over").first.evaluate(
        "c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some((v) => v > 0)"
    )
    if said:
        expect(tab.locator(".note")).to_contain_text(said)


def test_hostile_names_are_text(reader: Reader, audit: StoredAudit) -> None:
    first, *others = audit.curves.slide_ids[:3]
    for screen in SCREENS:
        tab = reader.open(screen, first)
        for name in (first, *others) if screen == "slide" else ():
            reader.turn_to(tab, screen, name)
            expect(tab.locator("#slide-name")).to_have_text(name)
            assert tab.locator("script").count() == 1
            assert tab.locator("img[src=x]").count() == 0
        assert tab.locator("script").count() == 1
        assert tab.locator("img[src=x]").count() == 0


def test_unknown_slides_and_lost_tokens_say_so(
    browser: Browser, address: str, reader: Reader
) -> None:
    tab = reader.browser.new_context().new_page()
    tab.goto(address)
    assert "it carries the token" in tab.content()
    tab.context.close()
    other = reader.open("slides")
    other.goto(f"{other.url.partition('#')[0]}#screen=slide&slide=nobody")
    expect(other.locator(".trouble")).to_have_text("This audit has no slide nobody.")


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (1440, "dark"), (390, "light")])
def test_nothing_serious_for_axe(reader: Reader, fifth: str, width: int, scheme: str) -> None:
    for screen in SCREENS:
        tab = reader.open(
            screen, fifth, viewport={"width": width, "height": 844}, color_scheme=scheme
        )
        if screen == "study":
            tab.locator("#reader").fill("axe")
            tab.locator("#begin").click()
            tab.locator(".labels").wait_for()
        assert findings(tab) == [], screen
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, screen
