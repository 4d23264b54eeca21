"""The cells of a study, what their keys depend on, and where their results are found."""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from foci.errors import FociError
from foci.studies.plan import CELLS, Cell, Plan, StudyFolder
from tests.makers.cohorts import toy_cohort
from tests.makers.studies import NARROW, make, values

SWEEPS: dict[str, Any] = {
    "adaptive": {"recipes": ["paper-adaptive"], "backbones": ["transmil"]},
    "lambda": {"vary": {"weights.hinge": [0.5, 2.0]}, "backbones": ["abmil"], "seeds": [1]},
    "alpha": {
        "recipe": "paper-adaptive", "vary": {"budget.alpha": [0.01]}, "audit": False,
        "cohorts": ["one"], "backbones": ["transmil"], "seeds": [1],
    },
    "n_cap": {"values": [4], "backbones": ["transmil"], "cohorts": ["two"]},
    "joint": {"epochs": 2, "backbones": ["transmil"], "cohorts": ["one"], "seeds": [1]},
}  # fmt: skip


def counts(plan: Plan) -> dict[str, int]:
    kinds = [cell.kind for cell in plan]
    return {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}


def names(cells: tuple[Cell, ...]) -> set[str]:
    return {cell.name for cell in cells}


def test_cohorts_times_backbones_times_seeds(tmp_path: Path) -> None:
    plan = make(tmp_path).plan()
    assert counts(plan) == {"train": 8, "fit": 8, "audit": 8}
    audit = plan.select(kind="audit", cohort="two", backbone="abmil", seed=2)[0]
    assert audit.name == "audit/two/abmil/2/main"
    assert [cell.name for cell in plan.needs(audit)] == [
        "train/two/abmil/2", "fit/two/abmil/2/main",
    ]  # fmt: skip


def test_sweeps(tmp_path: Path) -> None:
    plan = make(tmp_path, sweeps=SWEEPS, efficiency={}).plan()
    place = {cell.key: i for i, cell in enumerate(plan)}
    assert all(place[key] < place[cell.key] for cell in plan for key in cell.needs)
    assert len({cell.name for cell in plan}) == len(plan)
    assert counts(plan) == {
        "train": 8, "fit": 8 + 4 + 2 * 2 + 1, "audit": 8 + 4 + 2 * 2 + 2, "joint": 1, "cost": 2,
    }  # fmt: skip
    hinge = plan.select(kind="audit", variant="lambda.hinge=0.5", cohort="one")[0]
    assert hinge.rankings == ("selector",)
    assert hinge.recipe == "paper-ste"
    assert hinge.recipe_settings["weights.hinge"] == 0.5
    assert hinge.recipe_settings["schedule.epochs"] == 1  # the study's own are kept
    alpha = plan.select(variant="alpha.alpha=0.01")
    assert names(alpha) == {"fit/one/transmil/1/alpha.alpha=0.01"}
    assert alpha[0].recipe == "paper-adaptive"
    caps = plan.select(variant="n_cap")
    assert names(caps) == {f"audit/two/transmil/{s}/n_cap=4" for s in (1, 2)}
    main = plan.select(kind="fit", variant="main", cohort="two", backbone="transmil", seed=1)[0]
    assert main.key in plan.select(variant="n_cap", seed=1)[0].needs
    assert names(plan.select(kind="joint")) == {"joint/one/transmil/1/main"}
    assert names(plan.select(kind="cost")) == {"cost/one/abmil/1", "cost/one/transmil/1"}


def test_a_selector_of_its_own_for_every_cap(tmp_path: Path) -> None:
    sweeps = {"n_cap": {"values": [4, 6], "refit": True, "backbones": ["abmil"], "seeds": [1]}}
    plan = make(tmp_path, "one", sweeps=sweeps).plan()
    fits = plan.select(kind="fit", variant="n_cap")
    assert names(fits) == {"fit/one/abmil/1/n_cap=4", "fit/one/abmil/1/n_cap=6"}
    for audit in plan.select(kind="audit", variant="n_cap"):
        (fit,) = plan.select(kind="fit", variant="n_cap", n_cap=audit.n_cap)
        assert fit.key in audit.needs


def test_the_paper_has_as_many_cells_as_it_says(tmp_path: Path) -> None:
    make(tmp_path, "nsclc", "brca", "panda")
    content = {"cohorts": values("nsclc", "brca", "panda")["cohorts"]}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    plan = StudyFolder(tmp_path).plan()
    assert counts(plan) == {"train": 63, "fit": 88, "audit": 113, "joint": 1, "cost": 7}


def test_keys_depend_on_what_decides_a_cell(tmp_path: Path) -> None:
    def keys(**changes: Any) -> dict[str, str]:
        return {cell.name: cell.key for cell in make(tmp_path, **changes).plan()}

    def changed(**changes: Any) -> set[str]:
        other = keys(**changes)
        return {name for name, key in keys().items() if other[name] != key}

    every = set(keys())
    assert changed(name="another") == set()
    assert changed(read={"budgets": [4]}) == set()
    wider = {**NARROW, "abmil": {**NARROW["abmil"], "training": {"epochs": 3}}}
    assert changed(backbones=wider) == {name for name in every if "/abmil/" in name}
    audits = {name for name in every if name.startswith("audit")}
    assert changed(read={"kappas": [0.75]}) == audits
    quick = make(tmp_path).study.audit
    assert changed(audit={**quick, "random_orders": 3}) == audits
    assert changed(audit={**quick, "memory_gb": 3.0}) == set()
    longer = {**quick["recipe_settings"], "schedule.epochs": 2}
    fits = {name for name in every if not name.startswith("train")}
    assert changed(audit={**quick, "recipe_settings": longer}) == fits
    assert changed(n_cap=5) == every


def test_keys_depend_on_the_feature_files(tmp_path: Path) -> None:
    before = {cell.name: cell.key for cell in make(tmp_path).plan()}
    file = tmp_path / "one" / "features" / "s03.h5"
    os.utime(file, ns=(1, 1))
    after = {cell.name: cell.key for cell in StudyFolder(tmp_path).new_plan()}
    assert {n for n in before if before[n] != after[n]} == {n for n in before if "/one/" in n}


def test_folds_of_a_splits_folder_are_cohorts(tmp_path: Path) -> None:
    toy_cohort(tmp_path / "one")
    splits = tmp_path / "one" / "splits"
    splits.mkdir()
    for fold in range(3):
        parts = {"train": range(12), "val": range(12, 18), "test": range(18, 24)}
        lines = ["slide_id,split"]
        lines += [f"s{(i + fold) % 24:02d},{split}" for split, own in parts.items() for i in own]
        (splits / f"splits_{fold}.csv").write_text("\n".join(lines) + "\n")
    table = {"features": "one/features", "labels": "one/labels.csv", "splits": "one/splits"}
    plan = make(tmp_path, "one", cohorts={"one": table}, seeds=[1]).plan()
    assert [cell.fold for cell in plan.select(kind="train", backbone="abmil")] == [0, 1, 2]
    assert plan.select(kind="audit", fold=1)[0].name == "audit/one/fold-1/abmil/1/main"
    two = make(tmp_path, "one", cohorts={"one": {**table, "folds": [0, 2]}}, seeds=[1]).plan()
    assert {cell.fold for cell in two} == {0, 2}
    chosen = make(tmp_path, "one", cohorts={"one": {**table, "fold": 2}}, seeds=[1]).plan()
    assert {cell.fold for cell in chosen} == {None}
    with pytest.raises(FociError, match=r"has no fold 7 \(it has 0, 1, 2\)"):
        make(tmp_path, "one", cohorts={"one": {**table, "folds": [7]}}).new_plan()


def test_folds_without_a_folder(tmp_path: Path) -> None:
    table = {"features": "one/features", "labels": "one/labels.csv", "folds": "all"}
    with pytest.raises(FociError, match=r"folds: needs a folder of splits"):
        make(tmp_path, "one", cohorts={"one": table}).new_plan()


def test_ready_made_models(tmp_path: Path) -> None:
    model = tmp_path / "model.pt"
    given = {"abmil": {"models": {"one": {1: "model.pt"}}}}
    with pytest.raises(FociError, match=r"model.pt: does not exist; check the paths under models"):
        make(tmp_path, backbones=given).new_plan()
    model.write_bytes(b"weights")
    study = make(tmp_path, backbones=given)
    cell = study.new_plan().select(kind="train", cohort="one", seed=1)[0]
    assert study.result(cell) == model.resolve()
    other = study.new_plan().select(kind="train", cohort="one", seed=2)[0]
    assert study.result(other) is None
    model.write_bytes(b"other weights")
    assert study.new_plan().select(kind="train", cohort="one", seed=1)[0].key != cell.key


def test_results_and_failures_are_found_by_key(tmp_path: Path) -> None:
    study = make(tmp_path)
    cell = study.plan().select(kind="audit")[0]
    assert study.result(cell) is None
    assert study.failure(cell) is None
    study.write_record(cell, error="it diverged; lower the rate")
    assert study.failure(cell) == "it diverged; lower the rate"
    (tmp_path / CELLS / cell.key).mkdir(parents=True)
    assert study.result(cell) == tmp_path / CELLS / cell.key
    assert study.failure(cell) is None
    study.write_record(cell, seconds=3.5)
    assert study.seconds(cell) == 3.5


def test_the_plan_is_read_where_the_features_are_gone(tmp_path: Path) -> None:
    study = make(tmp_path)
    plan = study.plan()
    (tmp_path / "one" / "labels.csv").unlink()
    assert StudyFolder(tmp_path / "study.yaml").plan() == plan
    with pytest.raises(FociError):
        study.new_plan()


def test_another_study_is_planned_anew(tmp_path: Path) -> None:
    before = make(tmp_path).plan()
    after = make(tmp_path, seeds=[7]).plan()
    assert {cell.seed for cell in after} == {7}
    assert len(after) == len(before) // 2


def test_a_folder_without_a_study(tmp_path: Path) -> None:
    with pytest.raises(FociError, match=r"has no study.yaml; make one with foci study new"):
        StudyFolder(tmp_path)
