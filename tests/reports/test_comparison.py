"""Several audits on one page."""

import json
import re
from pathlib import Path

import pytest

from foci.audits import StoredAudit
from foci.errors import FociError
from foci.reports import write_comparison
from tests.reports.test_report import data_of, text_of


def test_rows_hold_the_numbers_of_their_audits(
    audit: StoredAudit, unlabelled: StoredAudit, tmp_path: Path
) -> None:
    page = write_comparison([audit, unlabelled.folder], tmp_path / "deep" / "c.html")
    first, second = data_of(page)["audits"]
    numbers = audit.summary.views["prediction"]
    assert first["auc"] == pytest.approx(audit.summary.full_bag.auc, abs=1e-4)
    for name, found in numbers.items():
        for end in ("estimate", "low", "high"):
            assert first["restricted"][name][end] == pytest.approx(
                getattr(found.restricted, end), abs=1e-4
            )
    assert first["shi_native"]["low"] == pytest.approx(numbers["selector"].shi_native.low, abs=1e-4)
    assert (second["auc"], second["shi_native"]) == (None, None)
    text = text_of(page)
    for row, one in ((first, audit), (second, unlabelled)):
        told = one.answers
        answers = (told.map.answer, told.tiles.answer, told.order.answer)
        assert (row["map"], row["tiles"], row["order"]) == answers
        slides = f"{told.n_decided} of {one.summary.n_slides}"
        assert f"abmil {' '.join(answers)} {slides} " in text
        for own in (told.map, told.tiles, told.order):
            assert " ".join(own.sentences) in text
        reach = one.summary.views["prediction"]["native"].reach
        assert row["reach"]["native"]["estimate"] == pytest.approx(reach.estimate, abs=2e-5)
    assert "Selector was not run in" in text
    assert "Synthetic slides" in text


def test_names_are_told_apart_and_escaped(
    audit: StoredAudit, multiclass: StoredAudit, tmp_path: Path
) -> None:
    page = write_comparison([audit, audit], tmp_path / "c.html")
    names = [row["name"] for row in data_of(page)["audits"]]
    assert all(name.startswith("abmil <demo> & co (") for name in names)
    assert "<demo>" not in page.read_text(encoding="utf-8")


def test_one_audit_is_a_page_and_none_is_not(audit: StoredAudit, tmp_path: Path) -> None:
    assert len(data_of(write_comparison([audit], tmp_path / "c.html"))["audits"]) == 1
    with pytest.raises(FociError, match="audits: are none; give at least one"):
        write_comparison([], tmp_path / "c.html")


def test_the_page_is_plain(audit: StoredAudit, tmp_path: Path) -> None:
    page = write_comparison([audit], tmp_path / "c.html")
    text = page.read_text(encoding="utf-8")
    assert json.dumps(data_of(page))
    assert "default-src &#39;none&#39;" in text
    assert len(re.findall(r"<script[ >]", text)) == 2
