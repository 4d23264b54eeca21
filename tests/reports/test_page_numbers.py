"""Every number that a reader sees first is the audit's: cards, charts' tables, slide table."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foci.audits import StoredAudit
from foci.audits.records import RankingNumbers
from foci.audits.tables import write_tables
from foci.reports import write_report
from foci.reports.text import MINUS, NOTHING, quartiles, tiles
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
    page = browser.new_page()
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


def test_cards(opened: tuple[StoredAudit, Page]) -> None:
    audit, page = opened
    told = audit.answers
    cards = page.locator(".answer").all()
    assert len(cards) == 3
    text = [" ".join(card.inner_text().split()) for card in cards]
    for card, one in zip(text, (told.map, told.tiles, told.order), strict=True):
        assert one.sentences[0] in card
    for card, comparison in ((text[0], told.map.comparison), (text[2], told.order.against_native)):
        if comparison is None:
            continue
        axes = [a for a in (comparison.necessity, comparison.sufficiency) if a is not None]
        assert any(
            f"{signed(a.d)} 95% interval {signed(a.low)} to {signed(a.high)} " in card
            and f"n = {a.n_slides} slides of {a.n_cases} patients" in card
            for a in axes
            if a.low is not None and a.high is not None
        ), card
    if told.tiles.count is not None:
        low, high = (shown(end, 0) for end in (told.tiles.count_low, told.tiles.count_high))
        assert told.tiles.answer.replace(",", "") in text[1]
        assert f"quartiles {low} and {high}; " in text[1]
        assert f"n = {told.tiles.n_slides} slides" in text[1]
    assert f"{told.n_decided} of {told.n_slides} slides decided" in text[1]


def signed(value: float) -> str:
    text = shown(value, 2)
    return text if text.startswith(MINUS) or text == "0.00" else f"+{text}"


def test_a_map_and_a_count_are_answered_without_a_selector(
    opened: tuple[StoredAudit, Page],
) -> None:
    audit, page = opened
    if "selector" in audit.summary.rankings:
        return
    assert audit.answers.map.comparison is not None
    numbers = page.locator(".answer .number b").all_inner_texts()
    assert len(numbers) >= 2, "the map against chance, and the tiles"
    assert "No candidate was compared" in page.locator(".answer").nth(2).inner_text()


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
    survival = table_of(page, "Who still needs more")
    survival.pop("")
    for k, cells in survival.items():
        for cell, name in zip(cells, rankings, strict=True):
            km = own[name].km
            at = max(i for i, step in enumerate(km.ks) if step <= int(k))
            assert km.low is not None
            assert km.high is not None
            assert cell == with_ends(km.survival[at], km.low[at], km.high[at])


def test_tables_of_medians_and_auc(opened: tuple[StoredAudit, Page]) -> None:
    audit, page = opened
    own, k_max = numbers(audit), audit.summary.k_max
    for title, key in (("Tiles needed", "msk"), ("Tiles the decision hangs on", "decisive")):
        rows = table_of(page, title)
        rows.pop("")
        for name, cells in rows.items():
            decided = own[name].decided
            assert decided is not None
            spread = quartiles(getattr(decided, key), k_max)
            assert f"{cells[0]} ({cells[1]})" == spread
            assert int(cells[2]) == decided.n_slides
    rows = table_of(page, "Only the selected tiles kept")
    rows.pop("")
    assert rows
    for name, cells in rows.items():
        kept = own[name].selected_only
        assert kept is not None
        assert cells == [shown(kept.auc), shown(kept.adaptive_auc)][: len(cells)]


def test_the_slide_table_is_slides_csv(opened: tuple[StoredAudit, Page], tmp_path: Path) -> None:
    audit, page = opened
    write_tables(tmp_path, audit.summary, audit.measured(), audit.slides, audit.skipped)
    stored = (tmp_path / "slides.csv").open(newline="")
    wanted = {row["slide_id"]: row for row in csv.DictReader(stored)}
    page.get_by_label("also AUKC and Faithfulness").check()
    found: dict[str, dict[str, str]] = page.evaluate(
        """() => {
            const heads = [...document.querySelectorAll('#slides-table thead tr:last-child th')];
            const keys = heads.map((head) => head.dataset.key);
            const rows = [...document.querySelectorAll('#slides-table tbody tr')];
            return Object.fromEntries(rows.map((row) => [row.cells[0].textContent,
                Object.fromEntries(keys.map((key, i) => [key, row.cells[i].textContent]))]));
        }"""
    )
    assert found.keys() == wanted.keys()
    for name, cells in found.items():
        for key, text in cells.items():
            assert text == cell(key, wanted[name], audit.summary.k_max), (name, key)


def cell(key: str, row: dict[str, Any], k_max: int) -> str:
    """What the table should show of a line of slides.csv."""
    names = {"id": "slide_id", "case": "case_id", "label": "label", "n": "n_tiles"}
    if key in names:
        return str(row[names[key]])
    if key == "predicted":
        return str(row["predicted"]) + " ✗" * (row["label"] != row["predicted"])
    if key == "p":
        return shown(float(row["p_predicted"]))
    measure, _, ranking = key.partition(":")
    stored = row[f"{'msk' if measure == 'k' else measure}:{ranking}"]
    value = float(stored) if stored else None
    if measure in ("k", "decisive"):
        share = float(row[f"{'reach' if measure == 'k' else 'decisive_found'}:{ranking}"])
        if not share:
            return f"> {k_max}" if measure == "k" else "none"
        return tiles(value) + " *" * (share < 1)
    return shown(value)
