"""A fitted selector on disk, and folders that are not what a fit wrote."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from foci import selectors
from foci.backbones import CallableBackbone, fingerprint
from foci.errors import CheckpointError, FociError
from foci.selectors import recipe, vary
from foci.selectors.recipes import paper_width
from tests.backbones.every import D_IN, small
from tests.makers.cohorts import planted
from tests.makers.fits import judge_by, per_class


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cohort = planted(tmp_path_factory.mktemp("planted"))
    out = tmp_path_factory.mktemp("fit") / "selector"
    scores = iter([0.1, 0.3, 0.2])
    with pytest.MonkeyPatch.context() as patch:
        judge_by(patch, lambda selector: next(scores))
        selectors.fit(small("abmil", "paper", 2), cohort, per_class(3), seed=5, out=out)
    return out


def test_what_is_loaded_is_what_was_fitted(folder: Path, tmp_path: Path) -> None:
    model = small("abmil", "paper", 2)
    loaded = selectors.load(folder, model)
    assert (loaded.seed, loaded.target, loaded.site) == (5, "label", "attention")
    assert loaded.recipe == per_class(3)
    assert loaded.best_epoch == 2
    assert repr(loaded) == (
        f"FittedSelector({loaded.recipe.name!r}, seed 5, epoch 2 of 3, "
        "gate at the attention, target label)"
    )
    assert [epoch.score for epoch in loaded.history] == [0.1, 0.3, 0.2]
    facts = json.loads((folder / "selector.json").read_text())
    assert facts["backbone"]["fingerprint"] == fingerprint(model)
    assert facts["classes"] == ["a", "b"]
    assert facts["slides"] == {"train": 8, "val": 4}
    tensors = load_file(folder / "selector.safetensors")
    assert facts["fingerprint"] == fingerprint(loaded.best.head)
    for name, value in loaded.best.head.state_dict().items():
        assert torch.equal(tensors[name], value)
    assert not any(p.requires_grad for p in loaded.best.head.parameters())
    bag = torch.randn(7, D_IN)
    assert torch.equal(loaded.rank(bag), loaded.best.scores(model.embed(bag)))

    selectors.save(loaded, tmp_path / "again")
    for name in ("selector.json", "selector.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()


def test_another_backbone_is_refused_in_one_line(folder: Path) -> None:
    other = small("abmil", "paper", 2)
    with torch.no_grad():
        other.head[0].bias[0] += 1e-6
    message = (
        r"^backbone abmil: is not the one that the selector was fitted on \(abmil \w{12}\); .*"
    )
    with pytest.raises(FociError, match=message) as refusal:
        selectors.load(folder, other)
    assert "\n" not in str(refusal.value)
    wide = CallableBackbone(lambda x: x.mean(0)[:2], d_in=64, n_classes=2)
    with pytest.raises(FociError, match="callable: is not the one"):
        selectors.load(folder, wide)
    loaded = selectors.load(folder, small("abmil", "paper", 2))
    with pytest.raises(FociError, match="is not the one"):
        loaded.best.check(other)


def copy(folder: Path, to: Path) -> Path:
    return Path(shutil.copytree(folder, to))


def test_damaged_folders_are_refused(folder: Path, tmp_path: Path) -> None:
    model = small("abmil", "paper", 2)
    cut = copy(folder, tmp_path / "cut")
    (cut / "selector.safetensors").write_bytes(b"cut")
    with pytest.raises(CheckpointError, match=r"selector.safetensors: cannot be read"):
        selectors.load(cut, model)

    swapped = copy(folder, tmp_path / "swapped")
    tensors = load_file(swapped / "selector.safetensors")
    tensors["score.bias"] = tensors["score.bias"] + 1
    save_file(tensors, swapped / "selector.safetensors")
    with pytest.raises(CheckpointError, match=r"is not the weights that selector.json names"):
        selectors.load(swapped, model)

    missing = copy(folder, tmp_path / "missing")
    del tensors["score.bias"]
    save_file(tensors, missing / "selector.safetensors")
    with pytest.raises(CheckpointError, match=r"does not fit selector.json"):
        selectors.load(missing, model)


def test_the_backbone_is_checked_before_the_head(folder: Path, tmp_path: Path) -> None:
    own = copy(folder, tmp_path / "copy")
    (own / "selector.safetensors").unlink()
    with pytest.raises(FociError, match="is not the one that the selector was fitted on"):
        selectors.load(own, small("abmil", "paper", 3))
    with pytest.raises(FociError, match="computes in float64, the selector was fitted on it in"):
        selectors.load(own, small("abmil", "paper", 2).double())
    with pytest.raises(CheckpointError, match=r"selector.safetensors: cannot be read"):
        selectors.load(own, small("abmil", "paper", 2))


def test_other_heads_and_functions_are_saved_and_loaded(tmp_path: Path) -> None:
    """The paper's head, and the selector of a function that gives the probe no answer."""
    cohort, paper = planted(tmp_path), small("abmil", "paper", 2)
    function = CallableBackbone(lambda x: (x + 0.6).sqrt().mean(0)[:2], D_IN, 2)
    for model, name in ((paper, "paper-ste"), (function, "default")):
        plan = vary(recipe(name), {"schedule.epochs": 1})
        fitted = selectors.fit(model, cohort, plan, out=tmp_path / name)
        loaded = selectors.load(tmp_path / name, model)
        assert loaded.recipe == plan
        assert fingerprint(loaded.best.head) == fingerprint(fitted.best.head)
        if model is paper:
            assert loaded.best.head.hidden == paper_width(model.d_token)


def test_a_folder_must_be_free(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(FociError, match="already holds a fitted selector; choose another --out"):
        selectors.check_free(folder)
    selectors.check_free(tmp_path / "new" / "er")
    assert not (tmp_path / "new").exists()
    (tmp_path / "file").write_text("")
    for taken in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(FociError, match="is no folder; choose another --out"):
            selectors.check_free(taken)


Facts = dict[str, Any]


REST = "columns=0"
DROPPED = object()


def put(value: Any, *place: Any) -> Callable[[Facts], None]:
    """Set one entry, or leave it out if the value is DROPPED."""

    def change(facts: Facts) -> None:
        branch: Any = facts
        for step in place[:-1]:
            branch = branch[step]
        if value is DROPPED:
            del branch[place[-1]]
        else:
            branch[place[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put(DROPPED, "fingerprint"), "fingerprint: Field required"),
        (put(DROPPED, "head", "hidden"), r"head\.hidden: Field required"),
        (put(DROPPED, "head", "columns"), r"head\.columns: Field required"),
        (put([], "fingerprint"), "fingerprint: Input should be a valid string"),
        (put(None, "head"), "head: Input should be an object"),
        (put("x", "head", "d"), r"head\.d: Input should be a valid integer"),
        (put(-1, "head", "d"), r"head\.d: Input should be greater than 0"),
        (put(1, "head", "z"), r"head\.z: Extra inputs are not permitted"),
        (put(["a", "b"], "backbone", "probe"), r"backbone\.probe\.0: .* valid number"),
        (put(["1", "2"], "backbone", "probe"), r"backbone\.probe\.0: .* valid number"),
        (put(3, "backbone", "fingerprint"), r"backbone\.fingerprint: .* valid string"),
        (put(1, "backbone", "z"), r"backbone\.z: Unexpected keyword"),
        (put(None, "backbone"), "backbone: Input should be an object"),
        (put("paper-ste", "recipe"), "recipe: Input should be an object"),
        (put(3, "recipe", "newer"), r"recipe\.newer: Extra inputs"),
        (put("zzz", "target"), "target: Input should be 'label' or 'prediction'"),
        (put("zzz", "site"), "site: Input should be 'feature' or 'attention'"),
        (put("a", "seed"), "seed: Input should be a valid integer"),
        (put(-1, "seed"), "seed: Input should be greater than or equal to 0"),
        (put([], "history"), "history: Tuple should have at least 1 item"),
        (put(1, "history", 0, "q"), r"history\.0\.q: Unexpected keyword"),
        (put(3, "history", 1, "epoch"), r"\(history does not count its epochs from 1\)"),
        (put(7, "best_epoch"), r"\(best_epoch is not the best of history\)"),
        (put(2**60, "head", "d"), rf"a head \(d={2**60} outputs=2 hidden=256 {REST}\) that"),
        (put(1, "head", "outputs"), rf"a head \(d=16 outputs=1 hidden=256 {REST}\) that"),
        (put(8, "head", "hidden"), rf"describes a head \(d=16 outputs=2 hidden=8 {REST}\) that"),
        (put(8, "head", "columns"), r"outputs=2 hidden=256 columns=8\) that"),
        (put(8, "recipe", "width"), rf"backbone and recipe \(d=16 outputs=2 hidden=8 {REST}\)"),
    ],
)  # fmt: skip
def test_damage_is_named(
    change: Callable[[Facts], None], message: str, folder: Path, tmp_path: Path
) -> None:
    path = copy(folder, tmp_path / "copy") / "selector.json"
    facts = json.loads(path.read_text())
    change(facts)
    path.write_text(json.dumps(facts))
    with pytest.raises(CheckpointError, match=message) as refusal:
        selectors.load(path.parent, small("abmil", "paper", 2))
    assert "\n" not in str(refusal.value)
    assert str(refusal.value).startswith(str(path))
    assert str(refusal.value).endswith("; fit the selector again")


def test_another_format_is_refused_in_one_line(folder: Path, tmp_path: Path) -> None:
    facts = json.loads((folder / "selector.json").read_text())
    path = tmp_path / "selector.json"
    path.write_text(json.dumps({**facts, "format": 2}))
    with pytest.raises(CheckpointError) as refusal:
        selectors.load(tmp_path, small("abmil", "paper", 2))
    assert str(refusal.value) == (
        f"{path}: is of format 2, this FOCI reads format 1; fit the selector again, or use the "
        "FOCI that wrote it"
    )


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    model = small("abmil", "paper", 2)
    (tmp_path / "selector.json").mkdir()
    with pytest.raises(CheckpointError, match=r"selector.json: cannot be read \(Is a directory\)"):
        selectors.load(tmp_path, model)
    (tmp_path / "selector.json").rmdir()
    for content in (b"{", b"\xff\xfe", b"[" * 100_000, b""):
        (tmp_path / "selector.json").write_bytes(content)
        with pytest.raises(CheckpointError, match=r"selector.json: is not JSON"):
            selectors.load(tmp_path, model)
    for text in ("[]", '{"format": 1}'):
        (tmp_path / "selector.json").write_text(text)
        with pytest.raises(CheckpointError, match="does not describe a selector"):
            selectors.load(tmp_path, model)
    with pytest.raises(CheckpointError, match="does not exist; give a folder made by foci fit"):
        selectors.load(tmp_path / "selector.json", model)
