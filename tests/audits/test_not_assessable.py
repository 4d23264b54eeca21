"""Too little to tell is an answer: every such audit finishes and says so in words."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foci.audits import StoredAudit
from foci.audits.folder import SUMMARY
from foci.audits.run import run
from foci.audits.sources import Sources
from foci.cli.text import audit_text
from foci.reports import write_report
from tests.makers.audits import model, settings
from tests.makers.cohorts import D_IN, Row, read, write_cohort


def rows(n: int, tiles: int, case: str | None) -> Iterator[Row]:
    rng = np.random.default_rng(0)
    for i in range(n):
        x = rng.normal(size=(tiles, D_IN)).astype(np.float32)
        yield Row(f"s{i}", x, case or f"c{i}", "ab"[i % 2], "")


def told(folder: Path, n: int, tiles: int, case: str | None, **changes: Any) -> StoredAudit:
    files = write_cohort(folder, rows(n, tiles, case))
    chosen = settings(rankings=("native", "evidence", "random"), **changes)
    cohort = read(files).with_classes(("a", "b"))
    return run(Sources(model(), cohort), chosen, files / "out")


def in_words(audit: StoredAudit) -> str:
    """What the terminal prints, after a check that neither it nor the report shows a NaN."""
    said = audit_text(audit)
    page = write_report(audit).read_text()
    words = page[: page.index('<section id="cards"')]  # which explains where a measure is NaN
    assert not re.search(r"\bnan\b", f"{said} {words}", flags=re.IGNORECASE)
    assert 'data-low="None"' not in words
    return " ".join(said.split())


def intervals(content: Any) -> Iterator[dict[str, Any]]:
    """Everything in a summary that could have an interval."""
    if isinstance(content, dict):
        ends = content.get("low"), content.get("high")
        if not any(isinstance(end, dict | list) for end in ends) and "low" in content:
            yield content
        for value in content.values():
            yield from intervals(value)
    elif isinstance(content, list):
        for value in content:
            yield from intervals(value)


CASES: dict[str, tuple[tuple[int, int, str | None], dict[str, Any], str, bool]] = {
    "one patient": ((7, 6, "P"), {}, "All slides come from one patient: there are no int", True),
    "one slide": ((1, 6, None), {}, "One slide was audited: there are no intervals", True),
    "one draw": ((8, 6, None), {"n_boot": 1}, "1 bootstrap draw cannot give an interval", True),
    "undecided": ((8, 6, None), {"kappa": 0.999999}, "The model has decided no slide", False),
    "single tiles": ((8, 1, None), {}, "Every decided slide has a single tile: all", False),
    "one tile": ((1, 1, None), {}, "Every slide has a single tile: all rankings are", True),
}


@pytest.mark.parametrize("name", CASES)
def test_too_little_is_said_in_words(tmp_path: Path, name: str) -> None:
    (n, tiles, case), changes, says, without = CASES[name]
    audit = told(tmp_path, n, tiles, case, **changes)
    assert says in in_words(audit)
    answers = audit.answers
    assert answers.map.answer == answers.order.answer == "not assessable"
    found = list(intervals(json.loads((audit.folder / SUMMARY).read_text())))
    assert len(found) > 3
    if without:
        assert all(one["low"] is None and one["high"] is None for one in found)
    else:
        assert any(one["low"] is not None for one in found)
