"""The table of the readout in the report: who was compared, on how many slides, by which rule."""

import json
from pathlib import Path

import pytest

from foci.audits import StoredAudit
from foci.audits.folder import MANIFEST
from foci.audits.records import Readout
from foci.audits.selectors import RULE, judged
from foci.reports.report import write_report
from foci.reports.text import NOTHING, readout_of
from foci.selectors.criterion import OrderReading
from tests.makers.audits import settings
from tests.makers.synthetic import Plan, make
from tests.reports.test_report import text_of


def chosen(n_better: int, n: int = 18) -> Readout:
    """A choice on slides of one patient each, on some of which the selector needs a tile less."""
    evidence = OrderReading(msk=2, decisive=5, area=0.3)
    better = OrderReading(msk=2, decisive=4, area=0.3)
    own = [better] * n_better + [evidence] * (n - n_better)
    return judged([evidence] * n, own, [f"P{i}" for i in range(n)], settings())


def with_readout(folder: Path, made: dict[str, object]) -> StoredAudit:
    make(folder, Plan(n_slides=4, n_tiles=8, k_max=8))
    path = folder / MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), "readout": made}))
    return StoredAudit.load(folder)


def test_the_table_says_who_won_and_by_what(tmp_path: Path) -> None:
    made = chosen(1)
    audit = with_readout(tmp_path, made.model_dump(mode="json"))
    table = readout_of(audit.manifest)
    assert table is not None
    assert table.rows == (
        ("evidence", True, ("5", "100%", NOTHING, NOTHING, "0.300")),
        ("selector", False, ("5", "100%", "1", "0", "0.300")),
    )
    text = text_of(write_report(audit))
    assert "Which order answers “which tiles?” The evidence order does. It was chosen on" in text
    assert "18 decided validation slides of 18 patients; no audited slide was read for it." in text
    decisive = made.comparisons[0]
    assert f"selector against evidence necessity (decisive K) {table.lines[0].text} unclear" in text
    assert f"{decisive.n_slides} {decisive.n_differ} of {decisive.n_cases}" in text
    assert f"The rule, fixed in advance: {RULE}." in text


def test_the_selector_as_the_winner() -> None:
    assert chosen(9).chosen == "selector"


@pytest.mark.parametrize("median", [3.0, None])
def test_an_order_without_a_median_says_so(tmp_path: Path, median: float | None) -> None:
    made = chosen(9).model_dump(mode="json")
    made["rows"][0]["decisive"] = median
    table = readout_of(with_readout(tmp_path, made).manifest)
    assert table is not None
    assert table.rows[0][2][0] == ("more than half have none" if median is None else "3")


def test_without_a_choice_there_is_no_section(audit: StoredAudit, page: Path) -> None:
    assert audit.manifest.readout is None
    assert "Which order answers" not in text_of(page)
