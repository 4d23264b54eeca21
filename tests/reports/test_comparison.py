"""Several audits on one page."""

import json
import re
import shutil
from pathlib import Path

import pytest

from foci.audits import StoredAudit
from foci.audits.folder import MANIFEST
from foci.errors import FociError
from foci.reports import write_comparison, write_report
from foci.reports.first_screen import first_screen
from foci.reports.text import fixed, percent, percent_ends, spread
from tests.reports.test_report import data_of, text_of


def test_rows_hold_the_numbers_of_their_audits(
    audit: StoredAudit, unlabelled: StoredAudit, tmp_path: Path
) -> None:
    page = write_comparison([audit, unlabelled.folder], tmp_path / "deep" / "c.html")
    text = text_of(page)
    for row, one in zip(data_of(page)["audits"], (audit, unlabelled), strict=True):
        told, chart, first = (
            one.answers,
            one.summary.carried,
            first_screen(one.summary, one.manifest),
        )
        assert chart is not None
        for name, line in chart.lines.items():
            assert row["carried"]["lines"][name]["share"] == pytest.approx(line.share, abs=1.1e-5)
        name = row["name"]
        assert f"{name} {first.word}. {first.facts}".strip() in text
        assert " ".join(first.sentences) in text
        answers = (told.map.answer, told.tiles.answer, told.order.answer)
        slides = f"{told.n_decided} of {one.summary.n_slides}"
        assert f"abmil {' '.join(answers)} {slides} " in text
        for own in (told.map, told.tiles, told.order):
            assert " ".join(own.sentences) in text
        native = one.summary.views["prediction"]["native"]
        needed = f"{fixed(native.restricted.estimate, 1)} {spread(native.restricted)}"
        assert f"{needed} " in text
        assert f"{percent(native.reach.estimate)} {percent_ends(native.reach)}" in text
    assert "Selector was not run in" in text
    assert "Synthetic slides" in text


def test_names_link_to_their_reports_and_flag_stand_ins(
    audit: StoredAudit, unlabelled: StoredAudit, tmp_path: Path
) -> None:
    folders = [tmp_path / "a b", tmp_path / "c"]
    for folder, one in zip(folders, (audit, unlabelled), strict=True):
        shutil.copytree(one.folder, folder)
    write_report(folders[0])
    manifest = json.loads((folders[1] / MANIFEST).read_text())
    manifest["backbone"]["score"] = "proxy"
    (folders[1] / MANIFEST).write_text(json.dumps(manifest))
    page = write_comparison(folders, tmp_path / "out" / "c.html")
    links = re.findall(r'<h3 id="model-\d"><a href="(.*?)">', page.read_text(encoding="utf-8"))
    assert links == ["../a%20b/report.html"], "the other has no report"
    assert text_of(page).count("Not the model's own map.") == 1


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
