"""Audits side by side."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from foci.audits import StoredAudit
from foci.audits.compare import ComparisonRow, compare, distinct_names
from foci.audits.manifest import write_manifest
from foci.audits.records import Alarm
from foci.cli.commands.compare import show
from foci.errors import FociError
from foci.reports import write_comparison
from tests.makers.curves import Counts
from tests.makers.folders import write_folder

FAST: Counts = {"native": [[4, 8]], "selector": [[1, 2], [1, 4]], "random": [[4, 6], [8, 10]]}
SLOW: Counts = {"native": [[9, None]], "selector": [[3, 5]], "random": [[7, 7]]}
CASES, LABELS = ["P1", "P2"], ["tumour", "benign"]


def folder(path: Path, counts: Counts = FAST, **how: Any) -> StoredAudit:
    how = {"targets": [1, 0], "drops": {"native": 0.256}, **how}
    return write_folder(path, counts, CASES[: len(counts["native"][0])], LABELS, **how)


def value(row: ComparisonRow, name: str) -> float | None:
    key, ranking = name.split(":")
    return row.interval(key, ranking).estimate


def test_a_row_holds_the_numbers_of_the_prediction_view(tmp_path: Path) -> None:
    audits = [folder(tmp_path / "a"), folder(tmp_path / "b", SLOW, name="clam")]
    found = compare(audits)
    first, second = found.rows
    assert (first.name, first.architecture) == ("abmil", "abmil")
    assert first.summary.full_bag.auc == 1.0
    assert (first.summary.n_slides, first.summary.n_cases, first.summary.kappa) == (2, 2, 0.9)
    assert value(first, "restricted:native") == value(first, "msk_cond:native") == 6
    assert value(first, "msk_cond:selector") == 2
    assert value(first, "shi_native:selector") == pytest.approx(4 / 6)
    assert value(first, "shi_random:selector") == pytest.approx(5 / 7)
    assert value(first, "shi_native:native") is None
    assert value(first, "faithfulness:native") == pytest.approx(0.001 * 255 / 2)
    assert (value(second, "restricted:native"), value(second, "reach:native")) == (132.5, 0.5)
    for key in ("restricted", "shi_native", "faithfulness"):
        ends = first.interval(key, "selector")
        assert ends.low <= ends.estimate <= ends.high
    for question in ("map", "tiles", "order"):
        assert first.answer(question) == getattr(audits[0].answers, question).answer
    assert found.notes == ()
    assert found.rankings == ("native", "selector", "random")


def test_csv_and_markdown(tmp_path: Path) -> None:
    found = compare([folder(tmp_path / "a", name="a|b"), folder(tmp_path / "b", SLOW, name="c")])
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert [row["name"] for row in rows] == ["a|b", "c"]
    assert float(rows[0]["shi_native:selector"]) == value(found.rows[0], "shi_native:selector")
    assert rows[0]["shi_native:native"] == ""
    header, line, first, second = found.to_markdown().splitlines()[:4]
    assert header.startswith("| model | architecture | AUC | tiles, native | tiles, selector |")
    assert set(line) == set("| -")
    assert first.startswith(r"| a\|b | abmil | 1.000 | 6.0 (100% reach) | 2.0 (100% reach) |")
    assert "| 0.67 (" in first
    assert "132.5 (50% reach)" in second
    assert header.count("|") == first.count("|") - 1 == second.count("|")


def test_equal_names_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    audits = [folder(tmp_path / "x" / "audit"), folder(tmp_path / "y" / "audit")]
    audits += [folder(tmp_path / "z"), folder(tmp_path / "w", name="clam")]
    names = distinct_names(audits)
    assert names[2:] == ["abmil (z)", "clam"]
    assert len(set(names)) == 4
    assert names[0] == f"abmil ({(tmp_path / 'x' / 'audit').resolve()})"


def test_fewer_than_two_and_twice_the_same_are_refused(tmp_path: Path) -> None:
    audit = folder(tmp_path / "a")
    with pytest.raises(FociError, match="needs two or more audits"):
        compare([audit])
    with pytest.raises(FociError, match="is given twice"):
        compare([audit, StoredAudit.load(audit.folder / ".." / "a")])


def test_alarms_of_every_audit_come_first(tmp_path: Path) -> None:
    audits = [folder(tmp_path / "a"), folder(tmp_path / "b", name="clam")]
    alarm = Alarm(kind="zero tiles", sentence="Half of s1 is zero.", slides=["s1"])
    manifest = audits[1].manifest.model_copy(update={"alarms": [alarm]})
    write_manifest(audits[1].folder, manifest)
    found = compare([audits[0], StoredAudit.load(audits[1].folder)])
    assert [row.alarms for row in found.rows] == [(), (alarm,)]
    assert found.to_markdown().startswith("**Alarm, zero tiles, clam:** Half of s1 is zero.\n\n| m")
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert [row["alarms"] for row in rows] == ["", "zero tiles"]
    said: list[str] = []
    show(found, said.append)
    assert said[0].startswith("ALARM, zero tiles, clam: Half of s1 is zero.\n")
    page = write_comparison([a.folder for a in audits], tmp_path / "c.html").read_text()
    assert page.index("<b>Zero tiles in clam.</b> Half of s1 is zero.") < page.index('id="table"')
    assert "1 alarm: read this before any number" in page


def test_one_patient_has_no_interval_to_show(tmp_path: Path) -> None:
    one: Counts = {"native": [[4]], "selector": [[2]], "random": [[4]]}
    audits = [write_folder(tmp_path / n, one, ["P1"], ["tumour"], name=n) for n in "ab"]
    header, *rows = compare(audits).cells()
    assert rows[0][header.index("SHI of selector vs native")] == "0.50"
