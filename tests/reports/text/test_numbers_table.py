"""The table of numbers says what the summary says."""

import statistics

import pytest

from foci.audits import StoredAudit, Summary
from foci.audits.settings import View
from foci.reports.text import MINUS, NOTHING, Cell, rows_of, seeds_of


def cells(audit: StoredAudit, view: View, title: str) -> tuple[Cell, ...]:
    (row,) = [row for row in rows_of(audit.summary, view) if row.title == title]
    return row.cells


@pytest.mark.parametrize("view", ["prediction", "label"])
def test_numbers_and_intervals(audit: StoredAudit, view: View) -> None:
    for cell, name in zip(
        cells(audit, view, "Restricted mean K"), audit.curves.rankings, strict=True
    ):
        found = audit.summary.views[view][name].restricted
        assert cell.text == f"{found.estimate:.1f}"
        assert cell.below == f"{found.low:.1f} to {found.high:.1f}"
    for cell, name in zip(cells(audit, view, "Reach"), audit.curves.rankings, strict=True):
        found = audit.summary.views[view][name].reach
        assert cell.text == f"{100 * found.estimate:.0f}%"


def test_a_ranking_is_not_compared_with_itself(audit: StoredAudit) -> None:
    native, selector, random = cells(audit, "prediction", "SHI against native")
    assert native == Cell(NOTHING)
    assert selector.text != NOTHING
    assert random.text.startswith(MINUS)


def test_rows_that_say_nothing_are_left_out(audit: StoredAudit, unlabelled: StoredAudit) -> None:
    assert "Reach, wrong slides" in {row.title for row in rows_of(audit.summary, "prediction")}
    titles = {row.title for row in rows_of(unlabelled.summary, "prediction")}
    assert "AUC, 32 tiles kept" not in titles
    assert "Reach, wrong slides" not in titles
    assert "Captured headroom" not in titles


def test_every_seed_is_listed_where_there_are_several(audit: StoredAudit) -> None:
    rows = seeds_of(audit.summary, "prediction")
    counts = {(row.ranking, len(row.values)) for row in rows}
    assert counts == {("selector", 3), ("random", 10)}
    found = next(row for row in rows if row.measure == "reach")
    seeds = audit.summary.views["prediction"]["selector"].reach_seeds
    assert found.values == tuple(f"{value:.2f}" for value in seeds)
    assert found.mean == f"{statistics.mean(seeds):.2f} ± {statistics.pstdev(seeds):.2f}"


def test_one_is_no_plural(audit: StoredAudit) -> None:
    summary = audit.summary.model_dump()
    numbers = summary["views"]["prediction"]["selector"]
    numbers["wilcoxon"] |= {"pvalue": 1.0, "n_pairs": 1}
    numbers["paired"]["n_both"] = 1
    below = {
        row.title: row.cells[summary["rankings"].index("selector")].below
        for row in rows_of(Summary.model_validate(summary), "prediction")
    }
    assert (below["Wilcoxon p"], below["Paired MSK"]) == ("1 patient differs", "1 slide")
    numbers["wilcoxon"]["n_pairs"] = 2
    again = {row.title: row.cells for row in rows_of(Summary.model_validate(summary), "prediction")}
    assert "2 patients differ" in [cell.below for cell in again["Wilcoxon p"]]
