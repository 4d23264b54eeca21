"""Every number that a reader sees first is the audit's: sentences, chart, slides, mean curves."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from foci.audits import StoredAudit
from foci.audits.records import RankingNumbers
from foci.audits.tables import write_tables
from foci.reports import write_report
from foci.reports.text import MINUS, NOTHING, tiles
from foci.words import decimals
from tests.makers.synthetic import Plan, make

pytest.importorskip("playwright", reason="playwright is not installed")

from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module", params=["two classes", "four classes", "no selector"])
def opened(
    request: pytest.FixtureRequest, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[StoredAudit, Page]]:
    plan = {
        "two classes": Plan(n_slides=30, names=()),
        "four classes": Plan(n_slides=12, n_classes=4, k_max=40, names=()),
        "no selector": Plan(n_slides=12, rankings=("native", "random"), names=()),
    }[request.param]
    audit = make(tmp_path_factory.mktemp("audit") / "a", plan)
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(write_report(audit).as_uri())
    yield audit, page
    page.close()


def shown(value: float | None, digits: int = 3) -> str:
    return NOTHING if value is None else decimals(value, digits).replace("-", MINUS)


def with_ends(value: float | None, low: float | None, high: float | None) -> str:
    ends = "" if low is None or high is None else f" ({shown(low)} to {shown(high)})"
    return shown(value) + ends


def table_of(page: Page, title: str) -> dict[str, list[str]]:
    """Rows of the table under a figure, by their first cell; the head is the row ``""``."""
    found: list[list[str]] = page.evaluate(
        """(title) => {
            const figures = [...document.querySelectorAll('#figures figure')];
            const own = figures.find((f) => f.querySelector('h3').textContent.startsWith(title));
            const rows = [...own.querySelectorAll('details table tr')];
            return rows.map((row) => [...row.cells].map((cell) => cell.textContent));
        }""",
        title,
    )
    head, *rows = found
    return {"": head[1:], **{row[0]: row[1:] for row in rows}}


def numbers(audit: StoredAudit) -> dict[str, RankingNumbers]:
    return audit.summary.views["prediction"]


def test_the_first_screen(opened: tuple[StoredAudit, Page]) -> None:
    """Every count in the sentences, and every label of the chart, is the summary's."""
    audit, page = opened
    chart = audit.summary.carried
    assert chart is not None
    k, n = min(32, chart.ks[-1]), chart.n_slides
    said = " ".join(page.locator(".lead").all_inner_texts())
    mine, chance = (int(chart.lines[name].share[k - 1] * n + 0.5) for name in (chart.map, "random"))
    sentence = f"first {k} tiles of this map carry the decision on {mine or 'none'} of {n} slides"
    assert f"{sentence}; as many random tiles on {chance or 'none'}." in said
    labels = page.locator("#chart svg text").all_text_contents()
    for name, line in chart.lines.items():
        called = {chart.map: "the model's map", "random": "random tiles"}
        at = labels.index(called.get(name, "best order found"))
        assert labels[at + 1] == f"{decimals(100 * line.share[k - 1], 0)}% at {k} tiles"
    if chart.typical is not None:
        assert f"{tiles(chart.typical)} tiles on a typical slide of the {n}" in said
    facts = page.locator("header").inner_text()
    assert f"{audit.summary.n_slides} test slides, {audit.summary.n_cases} patients" in facts
    assert f"AUC {shown(audit.summary.full_bag.auc)}" in facts


def test_the_lines_are_the_summary(opened: tuple[StoredAudit, Page]) -> None:
    """Every step of every line lies where its share says, read off the drawing."""
    audit, page = opened
    chart = audit.summary.carried
    assert chart is not None
    page.evaluate("document.querySelector('#details').open = true")
    drawn: dict[str, str] = page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll('#chart path[data-ranking]')]
            .map((path) => [path.dataset.ranking, path.getAttribute('d')]))"""
    )
    grid: list[float] = page.evaluate(
        """() => [...document.querySelectorAll('#chart svg > line')].slice(0, 5)
            .map((line) => Number(line.getAttribute('y1')))"""
    )
    bottom, top = grid[0], grid[-1]
    assert set(drawn) == set(chart.lines)
    for name, path in drawn.items():
        heights = [float(part) for part in re.findall(r"(?:M[\d.]+ |V)([\d.]+)", path)]
        shares = [(bottom - height) / (bottom - top) for height in heights]
        assert shares == pytest.approx(chart.lines[name].share, abs=2e-5)


def test_tables_under_the_charts(opened: tuple[StoredAudit, Page]) -> None:
    audit, page = opened
    own, rankings = numbers(audit), audit.summary.rankings
    reveal = table_of(page, "Reveal")
    assert reveal.pop("") == rankings
    assert len(reveal) > 3
    for k, cells in reveal.items():
        for cell, name in zip(cells, rankings, strict=True):
            curve = own[name].mean_curve
            at = curve.ks.index(int(k))
            assert cell == with_ends(curve.mean[at], curve.low[at], curve.high[at])
    deletion = table_of(page, "Deletion")
    deletion.pop("")
    for k, (*cells, n) in deletion.items():
        for cell, name in zip(cells, rankings, strict=True):
            drops = own[name].drops
            at = drops.ks.index(int(k))
            assert drops.low is not None
            assert drops.high is not None
            assert cell == with_ends(drops.mean[at], drops.low[at], drops.high[at])
        assert int(n) == max(o.drops.n_slides[o.drops.ks.index(int(k))] for o in own.values())


def test_the_cards_are_slides_csv(opened: tuple[StoredAudit, Page], tmp_path: Path) -> None:
    audit, page = opened
    write_tables(tmp_path, audit.summary, audit.measured(), audit.slides, audit.skipped)
    stored = (tmp_path / "slides.csv").open(newline="")
    wanted = list(csv.DictReader(stored))
    chart, kappa = audit.summary.carried, audit.summary.kappa
    assert chart is not None
    page.locator(".gallery").evaluate("e => { e.style.maxHeight = 'none' }")
    page.set_viewport_size({"width": 1280, "height": 6000})
    page.get_by_label("Order of the slides").select_option("by name")
    found: dict[str, tuple[str, str]] = page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll('#gallery .slide-card')].map(
            (card) => [card.dataset.index, [card.querySelector('.fate').textContent,
                                            card.querySelector('.slide-facts').textContent]]))"""
    )
    assert len(found) == len(wanted)
    for row, line in enumerate(wanted):
        fate, facts = found[str(row)]
        right = line["label"] == line["predicted"]
        called = "" if right else f", called {line['predicted']}"
        assert facts == f"{line['slide_id']} · {line['label']}{called}"
        if chart.relative is not None:
            continue
        if float(line["p_predicted"]) < kappa or int(line["n_tiles"]) < 2:
            assert fate == "Model is not sure of this slide"
        elif count := line[f"decisive:{chart.map}"]:
            plural = "" if float(count) == 1 else "s"
            said = f"{float(count):g} tile{plural} of {line['n_tiles']} carry the decision"
            assert fate == said
        else:
            assert fate.startswith(("Decision survives without the map's first", "Not carried"))
