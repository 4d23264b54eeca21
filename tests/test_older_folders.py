"""Model, selector and audit folders written by FOCI 0.1.0 before its modules moved still open.

``tests/fixtures/before`` was made by that code: 24 slides of the embedded cohort cut to 24 tiles of
16 features, an ABMIL of width 16 trained for two epochs, a selector fitted for two epochs, and an
audit of five slides with two selector seeds and two random orders.
"""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import foci
from foci.audits.analysis.agreement import agreement
from foci.audits.analysis.csv_tables import write_tables
from foci.audits.analysis.summarise import summarise
from foci.audits.compare.table import compare
from foci.audits.folder.state import state_of
from foci.reports import write_comparison

BEFORE = Path(__file__).parent / "fixtures" / "before"


@pytest.fixture
def audit(tmp_path: Path) -> foci.Audit:
    shutil.copytree(BEFORE / "audit", tmp_path / "audit")
    return foci.Audit.load(tmp_path / "audit")


def test_a_model_and_its_selector() -> None:
    backbone = foci.backbones.load(BEFORE / "model")
    assert (backbone.architecture, backbone.d_in, backbone.d_token) == ("abmil", 16, 16)
    fingerprint = "d549682ac09d674f199a6f49f1af8fb82da3900f89a83ef100ec43655d47e91d"
    assert foci.backbones.fingerprint(backbone) == fingerprint
    selector = foci.selectors.load(BEFORE / "selector", backbone)
    assert (selector.seed, selector.best_epoch, len(selector.history)) == (0, 2, 2)
    assert selector.best.rank(torch.zeros(3, 16), 1).shape == (3,)


def test_an_audit_opens(audit: foci.Audit) -> None:
    assert audit.manifest.name == "model"
    assert audit.manifest.settings.seeds == (0, 1)
    assert audit.summary.views["prediction"]["native"].restricted.estimate == 1.2
    assert audit.summary.views["prediction"]["native"].median_k == 1
    assert (audit.manifest.format, audit.summary.format) == (1, 1)
    assert audit.manifest.settings.fit_target == "prediction"
    # four patients are too few; deletion was measured at five counts only
    assert audit.answers.map.answer == "not assessable"
    assert not audit.summary.views["prediction"]["native"].decided.exact
    backbone = foci.backbones.load(BEFORE / "model")
    for seed in (0, 1):
        foci.selectors.load(audit.folder / "selectors" / f"seed-{seed}", backbone)


def test_its_settings_say_what_was_done_then(audit: foci.Audit) -> None:
    found = audit.manifest.settings
    assert (found.profile, found.target, found.fit_target) == ("foci", "prediction", "prediction")
    assert found.kappas == (found.kappa,) == (0.505,)
    backbone = foci.backbones.load(BEFORE / "model")
    fitted = foci.selectors.load(audit.folder / "selectors" / "seed-0", backbone)
    assert fitted.target == found.fit_target
    assert fitted.best.head.hidden == 256


@pytest.mark.parametrize("status", ["running", "complete"])
def test_it_is_not_gone_on_with(audit: foci.Audit, status: str) -> None:
    """Its confidences were settled otherwise, and its settings name no target of the fit."""
    path = audit.folder / "manifest.json"
    stored = json.loads(path.read_text())
    stored["run_inputs"] = stored.pop("decided_by")
    path.write_text(json.dumps({**stored, "status": status}))
    decided = {**stored["run_inputs"], "kappas": [0.505, 0.9], "fit_target": "prediction"}
    before = path.read_bytes()
    with pytest.raises(foci.FociError) as refused:
        state_of(audit.folder, decided, stored["versions"], force=False)
    assert str(refused.value) == (
        f"{audit.folder}: holds an audit with settings of an earlier FOCI (without kappas); "
        "give --force to redo it, or another --out"
    )
    assert path.read_bytes() == before
    assert state_of(audit.folder, decided, stored["versions"], force=True) == "new"


def test_objects_show_themselves_in_one_line(audit: foci.Audit) -> None:
    backbone = foci.backbones.load(BEFORE / "model")
    selector = foci.selectors.load(BEFORE / "selector", backbone)
    name = "'centred (schedule.epochs=2, schedule.warmup=1)'"
    assert repr(selector) == (
        f"FittedSelector({name}, seed 0, epoch 2 of 2, gate at the attention, target label)"
    )
    assert repr(audit.curves) == "CurveTable(5 slides; rankings: native, selector, random)"
    assert str(audit.summary) == (
        "Summary(5 slides of 4 patients; rankings: native, selector, random; "
        "map: not assessable; better order: not assessable)"
    )
    assert len(repr(audit.measured())) < 200


def test_its_curves_give_the_same_numbers(audit: foci.Audit, tmp_path: Path) -> None:
    settings, classes = audit.manifest.settings, audit.manifest.classes
    measured, found = audit.measured(), agreement(audit.curves, audit.tiles())
    summary = summarise(measured, audit.curves, classes, settings, found)
    assert _stored_then(summary) == _stored_then(audit.summary)
    assert summary.answers == audit.summary.answers
    for path in write_tables(tmp_path / "again", summary, measured, audit.slides, audit.skipped):
        before = list(csv.DictReader((audit.folder / "tables" / path.name).open()))
        after = list(csv.DictReader(path.open()))
        assert [{key: row[key] for key in old} for row, old in zip(after, before, strict=True)] == (
            before
        )


def _stored_then(summary: foci.audits.Summary) -> dict[str, Any]:
    """The numbers by view and ranking, without those that format 1 did not store."""
    views = summary.model_dump()["views"]
    for numbers in (one for by_ranking in views.values() for one in by_ranking.values()):
        del numbers["counts"]
        for curve in ("km", "drops"):
            del numbers[curve]["low"], numbers[curve]["high"]
        for name in ("n_whole", "n_slides"):
            del numbers["selected_only"][name]
    return views


def test_it_is_reported_and_compared(audit: foci.Audit, tmp_path: Path) -> None:
    page = audit.to_html(tmp_path / "report.html").read_text(encoding="utf-8")
    assert audit.answers.map.sentences[0] in page
    shutil.copytree(audit.folder, tmp_path / "other")
    other = foci.Audit.load(tmp_path / "other")
    rows = compare([audit, other]).rows
    assert [row.answer("order") for row in rows] == ["not assessable"] * 2
    assert write_comparison([audit, other], tmp_path / "comparison.html").is_file()
