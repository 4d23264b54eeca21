"""The whole way on a small embedded cohort."""

from pathlib import Path

import pytest

from foci.audits.settings import AuditSettings
from foci.demo import run
from foci.demo.run import DemoModel, run_demo

QUICK = AuditSettings(
    seeds=(0,),
    random_orders=2,
    k_max=8,
    n_boot=50,
    recipe_settings={"schedule.epochs": 1, "schedule.warmup": 0},
)
TINY = (
    DemoModel("abmil", {"d": 16, "hidden": 8, "head_hidden": None}, {"epochs": 1}),
    DemoModel("acmil", {"d": 16}, {"epochs": 1}),
)


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(run, "MODELS", TINY)
    monkeypatch.setenv("FOCI_CACHE", str(tmp_path / "cache"))


def test_from_nothing_to_a_comparison(tmp_path: Path) -> None:
    said: list[str] = []
    done = run_demo(tmp_path / "demo", slides=24, settings=QUICK, workers=1, say=said.append)
    assert [audit.manifest.name for audit in done.audits] == ["abmil", "acmil"]
    assert said[0] == "training and auditing abmil, acmil; one after the other"
    page = done.comparison.read_text(encoding="utf-8")
    assert "Synthetic slides: no patient" in page
    for audit in done.audits:
        truth = audit.manifest.truth
        assert truth.n_slides == len(audit.slides)  # every slide has witnesses
        assert 0.01 < truth.chance < 0.1
        assert set(truth.precision8) == {"native", "evidence", "selector-0"}
        report = (audit.folder / "report.html").read_text(encoding="utf-8")
        assert "Synthetic slides: no patient" in report


def test_what_is_finished_is_kept(tmp_path: Path) -> None:
    first = run_demo(tmp_path / "demo", slides=24, settings=QUICK, workers=1)
    stamps = [(p, p.stat().st_mtime_ns) for p in (tmp_path / "demo" / "models").rglob("*.*")]
    curves = [(audit.folder / "curves.parquet").stat().st_mtime_ns for audit in first.audits]
    again = run_demo(tmp_path / "demo", slides=24, settings=QUICK, workers=1)
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in stamps)
    assert curves == [(a.folder / "curves.parquet").stat().st_mtime_ns for a in again.audits]


def test_processes_give_the_same_numbers(tmp_path: Path) -> None:
    alone = run_demo(tmp_path / "alone", slides=24, settings=QUICK, workers=1)
    beside = run_demo(tmp_path / "beside", slides=24, settings=QUICK, workers=2)
    for one, other in zip(alone.audits, beside.audits, strict=True):
        texts = [audit.summary.to_json() for audit in (one, other)]
        assert texts[0] == texts[1]
