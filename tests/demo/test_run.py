"""The whole way on a small embedded cohort."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from foci.audits.settings import AuditSettings
from foci.demo import run
from foci.demo.run import DemoModel, DemoResult, run_demo

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


@pytest.fixture(scope="module", autouse=True)
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "MODELS", TINY)
        patch.setenv("FOCI_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def alone(tiny: None, tmp_path_factory: pytest.TempPathFactory) -> DemoResult:
    """A demo made by one process."""
    out = tmp_path_factory.mktemp("alone") / "demo"
    return run_demo(out, slides=24, settings=QUICK, workers=1)


def test_from_nothing_to_a_comparison(alone: DemoResult) -> None:
    assert [audit.manifest.name for audit in alone.audits] == ["abmil", "acmil"]
    page = alone.comparison.read_text(encoding="utf-8")
    assert "Synthetic slides: no patient" in page
    for audit in alone.audits:
        truth = audit.manifest.truth
        assert truth.n_slides == len(audit.slides)  # every slide has witnesses
        assert 0.01 < truth.chance < 0.1
        scored = set(truth.precision8) - {"minimal"}  # where the best order is proven
        assert scored == {"native", "evidence", "selector-0"}
        report = (audit.folder / "report.html").read_text(encoding="utf-8")
        assert "Synthetic slides: no patient" in report


def test_what_is_finished_is_kept(alone: DemoResult, caplog: pytest.LogCaptureFixture) -> None:
    stamps = {p: p.stat().st_mtime_ns for p in (alone.folder / "models").rglob("*.*")}
    curves = {a.folder / "curves" / "part-00000.parquet" for a in alone.audits}
    stamps |= {path: path.stat().st_mtime_ns for path in curves}
    run_demo(alone.folder, slides=24, settings=QUICK, workers=1)
    assert caplog.messages[0] == "training and auditing abmil, acmil; one after the other"
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps


def test_processes_give_the_same_numbers(alone: DemoResult, tmp_path: Path) -> None:
    beside = run_demo(tmp_path / "beside", slides=24, settings=QUICK, workers=2)
    for one, other in zip(alone.audits, beside.audits, strict=True):
        assert one.summary.to_json() == other.summary.to_json()
