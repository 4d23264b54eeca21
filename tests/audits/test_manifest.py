"""The manifest, and the key of a run."""

import hashlib
import os
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import torch

import foci
from foci.audits import StoredAudit
from foci.audits.manifest import file_hashes, first_difference, run_inputs
from foci.backbones import Backbone, CallableBackbone, fingerprint
from foci.bags import Cohort
from foci.files.hashes import digest
from tests.makers.audits import model, settings
from tests.makers.cohorts import D_IN, read


def test_it_says_what_was_asked_of_what(audited: StoredAudit) -> None:
    found = audited.manifest
    assert found.format == 1
    assert found.status == "complete"
    assert found.key == digest(found.run_inputs)
    assert found.settings == settings(rankings=("native", "selector", "random"), choose_by="aukc")
    assert found.backbone.model_dump() == {
        "architecture": "abmil",
        "parameters": sum(p.numel() for p in model().parameters()),
        "fingerprint": fingerprint(model()),
        "score": "native",
        "notes": [],
        "agreement": None,
    }
    assert (found.classes, found.split, found.name) == (["a", "b"], "test", "model")
    counts = {"train": 6, "val": 3, "audited": 5, "skipped": 0, "cut": 1}
    assert found.slides.model_dump() == counts
    assert found.versions["torch"] == torch.__version__
    assert found.versions["foci"] == foci.__version__
    started, finished = (datetime.fromisoformat(t) for t in (found.started, found.finished))
    assert started <= finished
    assert started.utcoffset() is not None


def test_hashes(audited: StoredAudit) -> None:
    found = audited.manifest
    parts = {name: known for name, known in found.files.items() if "/part-" in name}
    assert len(parts) == 3 * 3
    assert found.files == file_hashes(audited.folder, parts)
    for name, digested in found.files.items():
        data = (audited.folder / name).read_bytes()
        assert hashlib.sha256(data).hexdigest() == digested
    assert set(found.files) >= {
        "slides.parquet", "curves/part-00000.parquet", "rankings/part-00002.parquet",
        "summary.json",
        "tables/slides.csv", "selectors/seed-0/selector.safetensors",
    }  # fmt: skip
    (selector,) = found.selectors
    weights = found.files["selectors/seed-0/selector.safetensors"]
    assert (selector.seed, selector.weights_sha256) == (0, weights)
    lines = "".join(f"{s.slide_id} {s.features_xxh3}\n" for s in audited.slides)
    assert found.features_sha256 == hashlib.sha256(lines.encode()).hexdigest()


def facts(
    files: Path,
    backbone: Backbone | None = None,
    cohort: Cohort | None = None,
    split_seed: int = 0,
    **changes: Any,
) -> dict[str, Any]:
    return run_inputs(backbone or model(), cohort or read(files), settings(**changes), split_seed)


def test_the_same_is_the_same(files: Path) -> None:
    assert facts(files) == facts(files)
    assert digest(facts(files)) == digest(facts(files, memory_gb=9.0))
    assert facts(files, kappas=(0.7, 0.9, 0.8, 0.95)) == facts(files)


def test_the_paper_profile_is_what_it_fills_in_and_every_count(files: Path) -> None:
    rankings = ("native", "selector", "random")
    given = {
        "fit_target": "label", "target": "label", "recipe": "paper-ste", "rankings": rankings,
        "seeds_as": "each",
    }  # fmt: skip
    paper = facts(files, profile="paper", fit_target="label")
    assert paper == {**facts(files, **given), "reveals_every_count": True}


def test_the_target_of_a_fit_decides_only_where_one_is_fitted(files: Path) -> None:
    own, label = facts(files, fit_target=None), facts(files, fit_target="label")
    assert own == label != facts(files)  # the recipe's own target is the label
    assert first_difference(facts(files), label) == "fit_target = prediction, not label"
    bare = {"rankings": ("native",)}
    assert facts(files, fit_target="label", **bare) == facts(files, **bare)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"kappa": 0.7}, "kappa = 0.6, not 0.7"),
        ({"k_max": 5}, "k_max = 8, not 5"),
        ({"seeds": (0, 1)}, r"seeds = [0], not [0, 1]"),
        ({"target": "label"}, "target = prediction, not label"),
        ({"fit_target": "label"}, "fit_target = prediction, not label"),
        ({"kappas": (0.5,)}, "kappas = [0.6, 0.7, 0.8, 0.9, 0.95], not [0.5, 0.6]"),
        ({"block": 3}, "block = 2, not 3"),
        ({"n_boot": 21}, "n_boot = 20, not 21"),
        ({"recipe": "paper-ste"}, "recipe = tuned (schedule.epochs=1, schedule.warmup"),
        ({"split_seed": 4}, "split_seed = 0, not 4"),
        ({"backbone": model(seed=1)}, "another model"),
        ({"backbone": model("clam-sb")}, "another model"),
    ],
)
def test_settings_and_model(files: Path, changes: dict[str, Any], says: str) -> None:
    before, after = facts(files), facts(files, **changes)
    assert digest(before) != digest(after)
    assert first_difference(before, after).startswith(says)


def test_slides_and_files(files: Path) -> None:
    before, cohort = facts(files), read(files)
    moved = replace(cohort, slides=(replace(cohort.slides[0], label="b"), *cohort.slides[1:]))
    assert first_difference(before, facts(files, cohort=moved)) == "another slide table"
    capped = Cohort.read(files / "features", files / "labels.csv", n_cap=4, cache=False)
    assert first_difference(before, facts(files, cohort=capped)) == "n_cap = 9, not 4"
    path = files / "features" / "s11.h5"
    os.utime(path, ns=(1, 1))
    assert first_difference(before, facts(files)) == "other feature files"
    path.unlink()
    assert first_difference(before, facts(files, cohort=cohort)) == "other feature files"


def test_a_function_without_weights_is_known_by_its_answers(files: Path) -> None:
    def one(x: torch.Tensor) -> torch.Tensor:
        return x.mean(0)[:2]

    def other(x: torch.Tensor) -> torch.Tensor:
        return -x.mean(0)[:2]

    first, again, second = (
        facts(files, CallableBackbone(f, D_IN, 2))["model"] for f in (one, one, other)
    )
    assert first == again != second


@pytest.mark.parametrize("inner", [None, torch.nn.Linear(D_IN, 2)])
def test_the_tile_scores_of_a_function_belong_to_the_model(
    files: Path, inner: torch.nn.Module | None
) -> None:
    def keys(*scores: Any) -> list[Any]:
        function = inner or (lambda x: x[:, :2])
        made = (
            CallableBackbone(function, D_IN, 2, scores=own, pick=lambda x: x.mean(0))
            for own in scores
        )
        return [facts(files, one, rankings=("random",))["model"] for one in made]

    def fails(x: torch.Tensor) -> torch.Tensor:
        raise KeyError("knows its own slides only")

    first, same, other, none, broken = keys(
        lambda x: x[:, 0], lambda x: 1.0 * x[:, 0], lambda x: x[:, 1], None, fails
    )
    assert first == same
    assert len({first, other, none, broken}) == 4
