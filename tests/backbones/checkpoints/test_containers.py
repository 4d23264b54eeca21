"""The state dict is found in whatever a training script wrapped around it."""

import argparse
import pathlib
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from foci.backbones import load
from foci.backbones.checkpoints import inspect
from foci.backbones.checkpoints.containers import state_dict_of
from foci.errors import CheckpointError
from tests.backbones.checkpoints.official_files import OFFICIAL


def prefixed(state: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {prefix + key: tensor for key, tensor in state.items()}


def forgotten(path: Path, content: dict[str, Any]) -> None:
    """Saved together with objects of classes that nobody can import afterwards."""
    module = types.ModuleType("module_of_another_project")
    exec(
        "class Struct:\n"
        "    def __init__(self, **entries): self.__dict__.update(entries)\n"
        "class Dict(dict):\n"
        "    def __setstate__(self, state): self.update(state)\n"
        "    def __getstate__(self): return dict(self)\n"
        "class List(list): pass\n",
        module.__dict__,
    )
    objects = {
        "config": module.Struct(D_inner=8, nested=module.Struct(n_class=3)),
        "hyper_parameters": module.Dict(General=module.Dict(seed=2021), log=pathlib.PurePath("a")),
        "args": argparse.Namespace(lr=2e-4),
        "history": module.List([1, module.Struct()]),
        "loss": np.float64(0.65),
        "curve": np.arange(3),
        "flags": {1, 2},
        "device": torch.device("cpu"),
    }
    sys.modules[module.__name__] = module
    torch.save({**objects, **content}, path)
    del sys.modules[module.__name__]


@pytest.mark.parametrize(
    ("name", "wrap"),
    [
        ("clam-sb", lambda s: s),
        ("clam-sb", lambda s: prefixed(s, "module.")),
        ("acmil", lambda s: {"model": s, "epoch": 9}),
        ("acmil", lambda s: {"model": prefixed(s, "module."), "optimizer": {"state": {}}}),
        ("transmil", lambda s: {"state_dict": prefixed(s, "model."), "epoch": 3}),
        ("transmil", lambda s: {"state_dict": prefixed(s, "net.")}),
        ("transmil", lambda s: {"state_dict": prefixed(s, "model._orig_mod.module.")}),
        ("abmil-mil-lab", lambda s: prefixed(s, "model.")),
        ("abmil-xmil", lambda s: {"model_state_dict": s, "val_loss": 0.65}),
        ("mhim-v1-gated", lambda s: {"model": s, "teacher": None}),
        ("mhim-v1-gated", lambda s: {"model": s, "teacher": {k: v + 1 for k, v in s.items()}}),
        ("clam-sb-ungated-module", lambda s: prefixed(s, "module.")),
    ],
)
def test_the_state_dict_is_found(name: str, wrap: Any, tmp_path: Path) -> None:
    path, model = tmp_path / "checkpoint.ckpt", OFFICIAL[name].model()
    torch.save(wrap(OFFICIAL[name].state(model)), path)

    loaded = load(path)

    for key, tensor in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[key], tensor), key


@pytest.mark.parametrize("name", ["acmil", "asmil"])
def test_objects_of_unknown_classes_do_not_stand_in_the_way(name: str, tmp_path: Path) -> None:
    path, model = tmp_path / "checkpoint-best.pth", OFFICIAL[name].model()
    forgotten(path, {"model": OFFICIAL[name].state(model), "optimizer": {}, "epoch": 4})
    with pytest.raises(Exception, match="weights_only"):
        torch.load(path, weights_only=True)

    loaded = load(path)

    bag = torch.randn(5, model.d_in)
    assert torch.equal(loaded(bag), model(bag))


def test_lightning_keeps_hyper_parameters_and_the_weights_of_its_loss(tmp_path: Path) -> None:
    path, model = tmp_path / "epoch=03.ckpt", OFFICIAL["transmil"].model()
    state = prefixed(OFFICIAL["transmil"].state(model), "model.")
    forgotten(path, {"state_dict": {**state, "loss.weight": torch.ones(3)}, "global_step": 12})

    facts = inspect(path)

    assert facts.format == "TransMIL"
    assert facts.notes[0] == "part of the loss, left out: loss.weight"
    assert torch.equal(load(path).state_dict()["cls"], model.state_dict()["cls"])


def test_the_student_is_read_and_the_teacher_is_mentioned(tmp_path: Path) -> None:
    path, official = tmp_path / "fold_0_model_best_auc.pt", OFFICIAL["mhim-v1-gated"]
    state = official.state(official.model())
    torch.save({"model": state, "teacher": state}, path)
    assert "the file holds a teacher too; the student ('model') is read" in inspect(path).notes


def test_entries_that_are_no_tensors_are_mentioned(tmp_path: Path) -> None:
    path, official = tmp_path / "weights.pt", OFFICIAL["clam-sb"]
    torch.save({**official.state(official.model()), "epoch": 3, "_metadata": {}}, path)
    assert inspect(path).notes[0] == "not tensors, left out: epoch, _metadata"


def test_a_file_that_holds_itself_is_refused(tmp_path: Path) -> None:
    path, content = tmp_path / "loop.pt", dict[str, Any]()
    for loop in ({"model": content}, {"state_dict": {"model": content}}):
        content.update(loop)
        torch.save(content, path)
        with pytest.raises(CheckpointError, match=r"loop.pt: holds a state dict more than 8 entr"):
            load(path)


def test_eight_entries_deep_is_deep_enough() -> None:
    content: dict[str, Any] = {"a": torch.zeros(1)}
    for _ in range(8):
        content = {"model": content}
    assert list(state_dict_of(content, Path("a.pt"))) == ["a"]
    with pytest.raises(CheckpointError, match=r"a.pt: holds a state dict more than 8 entries deep"):
        state_dict_of({"model": content}, Path("a.pt"))


def test_a_prefix_counts_only_if_every_name_has_it() -> None:
    tensors = {"model.a": torch.zeros(1), "b": torch.zeros(1)}
    assert list(state_dict_of(tensors, Path("a.pt"))) == ["model.a", "b"]


def test_module_is_dropped_only_directly_after_attention_net() -> None:
    keys = ["attention_net.module.3.module.0.weight", "attention_net.3.module.0.bias", "a.module.b"]
    state = state_dict_of({key: torch.zeros(1) for key in keys}, Path("a.pt"))
    assert list(state) == [
        "attention_net.3.module.0.weight",
        "attention_net.3.module.0.bias",
        "a.module.b",
    ]


def test_a_tensor_that_leaves_its_storage_is_refused(tmp_path: Path) -> None:
    from foci.backbones.checkpoints.unpickle import Storage, StoredTensor

    storage = Storage(torch.float32, 1)
    storage.fill(bytes(4))
    content = {"classifiers.weight": StoredTensor(storage, 0, (2, 512), (0, 0))}
    with pytest.raises(CheckpointError, match=r"a.pt: classifiers.weight cannot be read"):
        state_dict_of(content, Path("a.pt"))


@pytest.mark.parametrize("entry", ["net", "weights", "ema", "model_state"])
def test_entries_of_other_scripts(entry: str, tmp_path: Path) -> None:
    path, official = tmp_path / "weights.pt", OFFICIAL["clam-sb"]
    torch.save({entry: official.state(official.model()), "epoch": 3}, path)
    assert inspect(path).format == "CLAM-SB"


@pytest.mark.parametrize("prefix", ["network.", "mil.", "model.network.", "module.mil."])
def test_prefixes_of_other_wrappers(prefix: str, tmp_path: Path) -> None:
    path, official = tmp_path / "weights.pt", OFFICIAL["clam-sb"]
    torch.save(prefixed(official.state(official.model()), prefix), path)
    assert inspect(path).format == "CLAM-SB"


def test_averaged_weights_beside_the_model_are_mentioned(tmp_path: Path) -> None:
    path, official = tmp_path / "weights.pt", OFFICIAL["clam-sb"]
    model = official.model()
    averaged = {key: 2 * tensor for key, tensor in official.state(model).items()}
    torch.save({"ema": averaged, "model": official.state(model)}, path)
    assert torch.equal(load(path).state_dict()["head.weight"], model.state_dict()["head.weight"])
    assert "the file holds averaged weights ('ema') too; 'model' is read" in inspect(path).notes


def test_metrics_of_a_lightning_module_are_left_out_and_named(tmp_path: Path) -> None:
    path, official = tmp_path / "last.ckpt", OFFICIAL["transmil"]
    metrics = {
        "AUROC.confmat": torch.zeros(3, 3),
        "valid_metrics.MulticlassAccuracy.tp": torch.zeros(3, dtype=torch.long),
        "test_acc.total": torch.zeros((), dtype=torch.long),
        "train_f1.fp": torch.zeros(3),
    }
    state = {**prefixed(official.state(official.model()), "model."), **metrics}
    torch.save({"state_dict": state}, path)
    facts = inspect(path)
    assert facts.format == "TransMIL"
    assert facts.notes[0] == f"metrics, left out: {', '.join(metrics)}"
    for other in ("calibration.temperature", "test_time_norm.weight"):
        torch.save({"state_dict": {**state, other: torch.ones(1)}}, path)
        with pytest.raises(CheckpointError, match="is of no known architecture"):
            load(path)
