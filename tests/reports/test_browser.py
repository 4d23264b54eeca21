"""The report and comparison pages in Chromium, opened from a file without a network."""

import csv
import json
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path
from urllib.parse import parse_qs, quote

import pytest
from PIL import Image

from foci.audits import StoredAudit, Summary
from foci.audits.audit import recompute
from foci.audits.folder import MANIFEST
from foci.audits.tables import write_tables
from foci.reports import write_comparison, write_report
from foci.reports.first_screen import first_screen, methods_text
from foci.reports.models import unpack
from foci.reports.report import notebook_html
from foci.reports.text import evidence
from foci.slides.find import INDEX, THUMBNAILS, Thumbnail
from foci.slides.image import Box
from tests.makers.synthetic import HOSTILE, Plan, make
from tests.reports.test_report import data_of

pytest.importorskip("playwright", reason="playwright is not installed")

from playwright.sync_api import Page, expect

from tests.reports.browser import Open

PLAIN = "TCGA-60-4010"
UNPLACED = "TCGA-53-4003"


def cards(tab: Page) -> list[int]:
    """Slides of the gallery that are drawn, from the first on."""
    found = tab.locator("#gallery .slide-card").evaluate_all("all => all.map(c => c.dataset.index)")
    return [int(index) for index in found]


def test_it_opens_with_the_word_the_chart_and_four_maps(visit: Open, audit: StoredAudit) -> None:
    tab = visit()
    assert tab.title() == "abmil <demo> & co: FOCI audit"
    first = first_screen(audit.summary, audit.manifest)
    expect(tab.locator(".word")).to_have_text(f"{first.word}.")
    expect(tab.locator(".lead")).to_have_text(list(first.sentences))
    assert audit.summary.carried is not None
    lines = tab.locator("#chart svg path[data-ranking]")
    expect(lines).to_have_count(len(audit.summary.carried.lines))
    expect(tab.locator("#first-slides canvas")).to_have_count(4)
    expect(tab.locator("#details")).not_to_have_attribute("open", "")


def test_the_fold_holds_the_comparisons_and_mean_curves(visit: Open, audit: StoredAudit) -> None:
    tab = visit()
    tab.locator("#details > summary").click()
    expect(tab.locator("#figures figure")).to_have_count(2)
    expect(tab.locator("#figures canvas")).to_have_count(2)
    lines = evidence(audit.answers)
    plots = tab.locator("td.plot[data-estimate] svg")
    expect(plots).to_have_count(len(lines))
    assert [plot.get_attribute("aria-label") for plot in plots.all()] == [
        f"{line.rankings}, {line.axis}: {line.text}" for line in lines
    ]
    expect(tab.locator("#evidence-scale svg")).to_have_count(1)
    for figure in tab.locator("#figures figure").all():
        assert figure.locator("details table tbody tr").count() > 1
        assert "n = " in figure.locator("figcaption").inner_text()


SHOWN = """() => {
    const seen = (e) => {
        const box = e.getBoundingClientRect();
        return box.width > 0 && box.top >= 0 && box.bottom <= innerHeight;
    };
    const prose = [...document.querySelectorAll('.say p, .say h2, .line-head > *, figcaption')]
        .filter((e) => e.getBoundingClientRect().top < innerHeight);
    const text = prose.map((e) => e.innerText).join(' ');
    const sizes = [...document.querySelectorAll('body *')]
        .filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()))
        .map((e) => [parseFloat(getComputedStyle(e).fontSize), e.className]);
    return {
        words: text.split(/\\s+/).filter((w) => /\\w/.test(w)).length,
        numbers: (text.match(/\\d+(\\.\\d+)?/g) ?? []).length,
        largest: sizes.sort((a, b) => b[0] - a[0])[0][1],
        chart: seen(document.querySelector('#chart svg')),
        maps: [...document.querySelectorAll('#first-slides canvas')].filter(seen).length,
    };
}"""


@pytest.mark.parametrize("name", ["plain", "stand-in", "few sure", "few sure, one class"])
def test_the_first_screen_is_short_and_shows_chart_and_maps(
    visit: Open, audit: StoredAudit, tmp_path: Path, name: str
) -> None:
    kappa = 0.97 if name.startswith("few sure") else None
    summary = recompute(audit, kappa=kappa)
    if name == "few sure, one class":
        stored = summary.model_dump()
        stored["answers"]["map"] |= {"answer": "yes", "only": ["B-type"]}
        summary = Summary.model_validate(stored)
    file = write_report(audit, tmp_path / "r.html", kappa=kappa, summary=summary)
    if name == "stand-in":
        stored = json.loads((audit.folder / MANIFEST).read_text())
        stored["backbone"]["score"] = "proxy"
        other = tmp_path / "other"
        shutil.copytree(audit.folder, other)
        (other / MANIFEST).write_text(json.dumps(stored))
        file = write_report(other)
    tab = visit(file=file, viewport={"width": 1440, "height": 900})
    if name != "plain":
        expect(tab.locator(".notice").first).to_be_visible()
    named = "stand-in map" if name == "stand-in" else "the model's map"
    expect(tab.locator("#chart svg")).to_contain_text(named)
    found = tab.evaluate(SHOWN)
    assert found["words"] <= 150
    assert found["numbers"] <= 12
    assert found["largest"].startswith("word "), "the verdict is the largest type"
    assert found["chart"]
    assert found["maps"] >= 3


def test_on_a_phone_word_sentences_and_chart_come_within_two_screens(visit: Open) -> None:
    tab = visit(viewport={"width": 390, "height": 844})
    for place in (".word", ".lead >> nth=-1", "#chart svg"):
        box = tab.locator(place).bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 2 * 844


def test_the_chart_can_be_saved_and_its_data_are_the_table(
    visit: Open, audit: StoredAudit, tmp_path: Path
) -> None:
    tab = visit()
    saved = {}
    for end in ("png", "svg", "data"):
        with tab.expect_download() as download:
            tab.locator(f"#save-{end}").click()
        saved[end] = tmp_path / download.value.suggested_filename
        download.value.save_as(saved[end])
    picture = Image.open(saved["png"])
    assert picture.size[0] == 2700
    assert len(picture.convert("RGB").getcolors(1 << 20)) > 20, "not a blank page"
    root = ET.fromstring(saved["svg"].read_text(encoding="utf-8"))
    text = " ".join(
        "".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")
    )
    assert "Share of slides whose decision the first tiles carry" in text
    write_tables(tmp_path, audit.summary, audit.measured(), audit.slides, audit.skipped)
    wanted = list(csv.DictReader((tmp_path / "carried.csv").open(newline="")))
    found = list(csv.DictReader(saved["data"].open(newline="")))
    assert [(r["order"], r["k"], r["n_slides"]) for r in found] == [
        (r["order"], r["k"], r["n_slides"]) for r in wanted
    ]
    for column in ("share", "low", "high"):
        shown, stored = ([float(row[column] or -1) for row in rows] for rows in (found, wanted))
        assert shown == pytest.approx(stored, abs=1.1e-5)


def test_the_methods_text_is_copied(visit: Open, audit: StoredAudit) -> None:
    tab = visit(permissions=["clipboard-read", "clipboard-write"])
    tab.locator("#copy-methods").click()
    expect(tab.locator("#copy-methods")).to_have_text("Copied")
    copied = tab.evaluate("navigator.clipboard.readText()")
    assert copied == methods_text(audit.summary, audit.manifest)


def test_charts_are_drawn(visit: Open) -> None:
    tab = visit()
    tab.locator("#details > summary").click()
    expect(tab.locator(".u-wrap canvas")).to_have_count(2)
    drawn = tab.evaluate(
        """() => [...document.querySelectorAll('.chart canvas, .map-picture')].map((canvas) => {
            const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
            let painted = 0;
            for (let i = 3; i < data.length; i += 4) painted += data[i] > 0;
            return painted / (canvas.width * canvas.height);
        })"""
    )
    assert len(drawn) > 6
    assert min(drawn) > 0.01


def test_a_page_with_compressed_data_shows_the_same(
    visit: Open, audit: StoredAudit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foci.reports.html.COMPRESSED_FROM", 0)
    packed = write_report(audit, tmp_path / "packed.html")
    assert '"kind":"audit"' not in packed.read_text(encoding="utf-8")
    texts = [tab.locator("main").inner_text() for tab in (visit(), visit(file=packed))]
    assert texts[0] == texts[1]
    assert PLAIN in texts[1]


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


def test_slides_on_which_the_map_fails_come_first(visit: Open, page: Path) -> None:
    tab = visit(viewport={"width": 1280, "height": 3000})
    gallery = data_of(page)["gallery"]
    shown = cards(tab)
    assert shown == gallery["order"][: len(shown)]
    fates = [gallery["fate"][row] for row in gallery["order"]]
    ranks = {"survives": 0, "not enough": 1, "carried": 2, "not sure": 3}
    assert [ranks[fate] for fate in fates] == sorted(ranks[fate] for fate in fates)
    tab.get_by_label("Order of the slides").select_option("best first")
    assert cards(tab) == gallery["order"][::-1][: len(shown)]


def test_filters(visit: Open, audit: StoredAudit, page: Path) -> None:
    tab = visit()
    slides = data_of(page)["slides"]
    tab.locator('input[type="search"]').fill("tcga-6")
    assert all(slides["id"][row].startswith("TCGA-6") for row in cards(tab))
    n = sum(name.startswith("TCGA-6") for name in slides["id"])
    expect(tab.locator(".count")).to_have_text(f"{n} of {len(audit.slides)} slides")
    tab.locator('input[type="search"]').fill("")
    tab.get_by_label("Order of the slides").select_option("misclassified first")
    wrong = [row for row, label in enumerate(slides["label"]) if label != slides["predicted"][row]]
    assert 0 < len(wrong) < len(audit.slides)
    assert set(cards(tab)[: len(wrong)]) <= set(wrong)


def test_only_cards_in_sight_are_drawn(visit: Open, tmp_path: Path) -> None:
    many = make(
        tmp_path / "many", Plan(n_slides=120, n_tiles=40, k_max=8, random_orders=1, null_maps=0)
    )
    tab = visit(file=write_report(many))
    assert 0 < len(cards(tab)) < 60
    top = cards(tab)
    tab.locator(".gallery").evaluate("e => { e.scrollTop = e.scrollHeight }")
    tab.wait_for_function(
        "top => document.querySelector('#gallery .slide-card').dataset.index != top",
        arg=str(top[0]),
    )
    assert cards(tab)[-1] == data_of(many.folder / "report.html")["gallery"]["order"][-1]
    assert len(cards(tab)) < 60


def test_the_slide_view_opens_turns_and_closes(visit: Open, page: Path) -> None:
    tab = visit()
    data = data_of(page)
    order = [data["slides"]["id"][row] for row in data["gallery"]["order"]]
    tab.locator("#gallery .slide-card").nth(1).click()
    expect(tab.locator("#slide-name")).to_have_text(order[1])
    assert parse_qs(tab.url.split("#")[1])["slide"] == [order[1]]
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
    first = tab.locator("#gallery a.slide-card").first
    name = first.locator(".slide-facts").inner_text().split(" · ")[0]
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
    expect(tab.locator("#gallery a.slide-card").first).to_be_focused()
    tab.locator("#details > summary").focus()
    tab.keyboard.press("Enter")
    expect(tab.locator("#figures figure")).to_have_count(2)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_text(visit: Open, name: str) -> None:
    tab = visit(f"#slide={quote(name)}")
    expect(tab.locator("#slide-name")).to_have_text(name)
    tab.locator('input[type="search"]').fill(name)
    assert name in tab.locator("#gallery .slide-facts").first.inner_text()
    assert tab.locator("img").count() == 0
    assert tab.locator("script").count() == 2


def test_a_link_to_a_section_leaves_the_slide_open(visit: Open) -> None:
    tab = visit(f"#slide={PLAIN}")
    tab.locator('a[href="#slides"]').click()
    expect(tab.locator("#slide-name")).to_have_text(PLAIN)


def test_the_slide_has_keep_and_remove_curves_and_its_flip(
    visit: Open, carried: StoredAudit, tmp_path: Path
) -> None:
    file = write_report(carried, tmp_path / "r.html")
    tab = visit("#slide=s4", file=file)
    names = tab.locator("#slide-view .legend-entry").all_inner_texts()
    assert [name.strip() for name in names] == [
        "the model's map: keep", "best order: keep", "the model's map: remove",
        "best order: remove", "random tiles: keep",
    ]  # fmt: skip
    said = "30 tiles of 300 carry the decision; best order: 5 tiles"
    expect(tab.locator("#deciding")).to_have_text(said)
    expect(tab.locator("#k-value")).to_have_text("K = 30")
    assert data_of(file)["details"]["4"]["removed"]["native"]["flip"] == 30
    deciding = tab.locator("#slide-view .big-map canvas")
    expect(deciding).to_be_visible()
    black = """c => { const {data} = c.getContext('2d').getImageData(0, 0, c.width, c.height);
        let n = 0; for (let i = 0; i < data.length; i += 4)
            n += data[i + 3] === 255 && data[i] + data[i + 1] + data[i + 2] === 0;
        return n; }"""
    outlined = deciding.evaluate(black)
    tab.locator("#next-slide").click()
    tab.goto(file.as_uri() + "#slide=s6")
    expect(tab.locator("#deciding")).to_contain_text(
        "Decision survives without the map's first 256 tiles"
    )
    assert outlined > 0 == tab.locator("#slide-view .big-map canvas").evaluate(black)


def test_light_and_dark(visit: Open) -> None:
    tab = visit(color_scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    assert tab.evaluate(background) == "rgb(20, 23, 28)"
    tab.locator("#theme").click()
    assert tab.evaluate(background) == "rgb(255, 255, 255)"


@pytest.mark.parametrize("width", [390, 600, 768])
def test_a_small_screen_does_not_scroll_sideways(visit: Open, width: int) -> None:
    tab = visit(f"#slide={quote(HOSTILE[1])}", viewport={"width": width, "height": 800})
    expect(tab.locator("#chart svg")).to_be_visible()
    expect(tab.locator("#slide-view canvas").first).to_be_visible()
    assert tab.evaluate("document.documentElement.scrollWidth") == width


PIXELS = "canvases => canvases.map(c => c.width / c.getBoundingClientRect().width)"
DRAWN = "#slide-view .chart canvas, #slide-view canvas.tiles"
SHARP = """(drawn) => {
    const canvases = [...document.querySelectorAll(
        '#slide-view .chart canvas, #slide-view canvas.tiles')];
    const ratios = canvases.map((one) => one.width / one.getBoundingClientRect().width);
    return ratios.length === 3 && ratios.every((one) => Math.abs(one / drawn - 1) < 0.01);
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
    expect(tab.locator(DRAWN)).to_have_count(3)
    expect(tab.locator("#slide-view .cursor-line")).to_be_attached()
    ratios = tab.locator(DRAWN).evaluate_all(PIXELS)
    assert ratios == pytest.approx([drawn] * 3, rel=0.01)


def test_charts_and_maps_stay_sharp_after_a_zoom(visit: Open) -> None:
    tab = visit(f"#slide={PLAIN}")
    expect(tab.locator(DRAWN)).to_have_count(3)
    devtools = tab.context.new_cdp_session(tab)
    for zoomed, drawn in ((3, 3), (1, 2), (4, 4)):
        # Chromium tells the page of an emulated zoom only together with another size.
        size = {"width": 1280, "height": 900 + zoomed, "mobile": False}
        devtools.send("Emulation.setDeviceMetricsOverride", {**size, "deviceScaleFactor": zoomed})
        tab.wait_for_function(f"() => devicePixelRatio === {zoomed}")
        tab.wait_for_function(SHARP, arg=drawn)


def test_lines_can_be_switched_off_and_the_axis_changed(visit: Open) -> None:
    tab = visit()
    tab.locator("#details > summary").click()
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
    assert "Share of slides whose decision the first K tiles carry" in text
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
    expect(tab.locator("#slide-view .facts")).to_contain_text("misclassified")
    tab = visit("#slide=TCGA-54-4004", file=write_report(unlabelled, tmp_path / "u.html"))
    expect(tab.locator("#slide-name")).to_have_text("TCGA-54-4004")


def test_the_comparison_opens(
    visit: Open, audit: StoredAudit, unlabelled: StoredAudit, tmp_path: Path
) -> None:
    page = write_comparison([audit, unlabelled], tmp_path / "compare.html")
    tab = visit(file=page)
    expect(tab.locator(".multiple-chart svg")).to_have_count(2)
    words = [f"{first_screen(a.summary, a.manifest).word}." for a in (audit, unlabelled)]
    expect(tab.locator(".multiple .verdict b")).to_have_text(words)
    heights = tab.locator(".multiple-chart svg").evaluate_all(
        "all => all.map(s => s.getAttribute('height'))"
    )
    assert len(set(heights)) == 1, "one y axis"
    expect(tab.locator("#table tbody tr")).to_have_count(2)
    badges = [
        answer
        for own in (audit.answers, unlabelled.answers)
        for answer in (own.map.answer, own.order.answer)
    ]
    expect(tab.locator(".comparison-table .badge")).to_have_text(badges)
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
    expect(tab.frame_locator("iframe").locator("#chart svg")).to_be_visible()
    expect(frame.locator(".count")).to_have_text("20 slides")
    slides = tab.frame_locator("iframe").locator("#gallery")
    expect(slides).not_to_be_in_viewport()
    frame.locator("a[href='#slides']").click()
    expect(slides).to_be_in_viewport()
    assert frame.evaluate("location.href") == "about:srcdoc#slides"
    assert frame.evaluate("origin") == "null"
