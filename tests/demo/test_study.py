"""The study in miniature: what it consists of; it is run whole outside of the tests."""

from pathlib import Path

import pytest

from foci.demo.run import TASKS, make_study, run_miniature
from foci.errors import FociError
from foci.studies.study import BACKBONES


def test_seven_backbones_two_tasks_two_seeds(tmp_path: Path) -> None:
    folder = make_study(tmp_path / "demo", slides=12)
    plan = folder.plan()
    trained = plan.select(kind="train")
    assert {(c.cohort, c.backbone, c.seed) for c in trained} == {
        (task, backbone, seed) for task in TASKS for backbone in BACKBONES for seed in (0, 1)
    }
    assert len(plan.select(kind="cost")) == 7
    assert len(plan.select(kind="joint")) == 1
    assert {cell.variant for cell in plan} == {
        "main", "paper-adaptive", "paper-soft", "no-suff", "no-excl", "no-contig", "freeze-only",
        "n_cap",
    }  # fmt: skip
    assert make_study(tmp_path / "demo", slides=12).plan() == plan
    with pytest.raises(FociError, match="holds a demo with other parameters"):
        make_study(tmp_path / "demo", slides=20)
    (tmp_path / "demo" / "study.yaml").write_text("name: mine\n")
    with pytest.raises(FociError, match="holds another study; choose another folder"):
        make_study(tmp_path / "demo", slides=12)


def test_one_cell_of_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = make_study(tmp_path / "demo", slides=12)
    text = (folder.path / "study.yaml").read_text()
    narrow = text[: text.index("backbones:")] + (
        "backbones:\n  abmil: {widths: {d: 8, hidden: 4, head_hidden: 4}, training: {epochs: 1}}\n"
        "audit: {rankings: [native, random], random_orders: 1, n_boot: 5, k_max: 4}\n"
        "sweeps: {}\nefficiency: null\n"
    )
    (folder.path / "study.yaml").write_text(narrow)
    tally = run_miniature(type(folder)(folder.path), workers=1)
    assert (tally.done, tally.total) == (8, 8)
    assert sum(line.startswith("[") for line in caplog.messages) == 8
