import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from foci import selectors
from foci.backbones import CallableBackbone, fingerprint
from foci.errors import CheckpointError, FociError
from foci.selectors import recipe, vary
from foci.selectors.heads import paper_width
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
    to.mkdir()
    for file in folder.iterdir():
        (to / file.name).write_bytes(file.read_bytes())
    return to


def test_damaged_folders_are_refused(folder: Path, tmp_path: Path) -> None:
    model = small("abmil", "paper", 2)
    with pytest.raises(CheckpointError, match=r"selector.json: does not exist"):
        selectors.load(tmp_path, model)

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

    for content, message in (
        ("{", "is not JSON"),
        ("[]", "does not describe a selector"),
        ('{"format": 1}', "does not describe a selector"),
    ):
        broken = copy(folder, tmp_path / f"broken{message}{content}")
        (broken / "selector.json").write_text(content)
        with pytest.raises(CheckpointError, match=message):
            selectors.load(broken, model)


def test_the_backbone_is_checked_before_the_head(folder: Path, tmp_path: Path) -> None:
    own = copy(folder, tmp_path / "copy")
    (own / "selector.safetensors").unlink()
    with pytest.raises(FociError, match="is not the one that the selector was fitted on"):
        selectors.load(own, small("abmil", "paper", 3))
    with pytest.raises(FociError, match="computes in float64, the selector was fitted on it in"):
        selectors.load(own, small("abmil", "paper", 2).double())
    with pytest.raises(CheckpointError, match=r"selector.safetensors: cannot be read"):
        selectors.load(own, small("abmil", "paper", 2))


def test_the_papers_head_is_saved_and_loaded(tmp_path: Path) -> None:
    cohort, model = planted(tmp_path), small("abmil", "paper", 2)
    plan = vary(recipe("paper-ste"), {"schedule.epochs": 1})
    fitted = selectors.fit(model, cohort, plan, out=tmp_path / "out")
    assert fitted.best.head.hidden == paper_width(model.d_token)
    loaded = selectors.load(tmp_path / "out", model)
    assert loaded.recipe == plan
    assert fingerprint(loaded.best.head) == fingerprint(fitted.best.head)


def test_a_function_without_an_answer_to_the_probe_finds_its_selector(tmp_path: Path) -> None:
    cohort = planted(tmp_path)
    model = CallableBackbone(lambda x: (x + 0.6).sqrt().mean(0)[:2], D_IN, 2)
    plan = vary(recipe("default"), {"schedule.epochs": 1})
    fitted = selectors.fit(model, cohort, plan, out=tmp_path / "out")
    loaded = selectors.load(tmp_path / "out", model)
    assert fingerprint(loaded.best.head) == fingerprint(fitted.best.head)


def test_a_folder_must_be_free(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(FociError, match="already holds a fitted selector; choose another --out"):
        selectors.check_free(folder)
    selectors.check_free(tmp_path / "new" / "er")
    assert not (tmp_path / "new").exists()
    (tmp_path / "file").write_text("")
    for taken in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(FociError, match="is no folder; choose another --out"):
            selectors.check_free(taken)
