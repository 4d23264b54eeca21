"""Files of torch.save and safetensors, and the state dict in what a script wrapped around it."""

import argparse
import contextlib
import functools
import io
import pathlib
import pickle
import sys
import types
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save, save_file
from torch import Tensor

from foci.backbones import load
from foci.backbones.checkpoints import inspect
from foci.backbones.checkpoints.containers import read_content, state_dict_of
from foci.backbones.checkpoints.unpickle import Storage, StoredTensor
from foci.errors import CheckpointError
from tests.backbones.checkpoints.official_files import OFFICIAL

CLAM, TRANSMIL = OFFICIAL["clam-sb"], OFFICIAL["transmil"]
DTYPES = (
    "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool",
)  # fmt: skip


def tensors() -> dict[str, torch.Tensor]:
    base = torch.arange(24.0).reshape(4, 6)
    return {
        "float": base,
        "transposed": base.T,
        "window": base[1:3, 2:5],
        "scalar": torch.tensor(2.5),
        "empty": torch.zeros(0, 3),
        "parameter": torch.nn.Parameter(torch.randn(2, 2)),
        **{name: torch.tensor([0, 1, 1]).to(getattr(torch, name)) for name in DTYPES},
    }


@pytest.mark.parametrize("legacy", [False, True])
def test_tensors_equal_those_of_torch_load(legacy: bool, tmp_path: Path) -> None:
    path = tmp_path / "tensors.pt"
    torch.save(tensors(), path, _use_new_zipfile_serialization=not legacy)

    got = state_dict_of(read_content(path), path)

    want = torch.load(path, weights_only=True)
    assert list(got) == list(want)
    for name, tensor in want.items():
        assert got[name].dtype == tensor.dtype, name
        assert torch.equal(got[name], tensor), name


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_any_protocol_of_pickle_is_read(protocol: int, tmp_path: Path) -> None:
    path = tmp_path / "tensors.pt"
    torch.save(tensors(), path, pickle_protocol=protocol)
    assert torch.equal(state_dict_of(read_content(path), path)["window"], tensors()["window"])


@pytest.mark.parametrize("legacy", [False, True])
def test_tensors_of_a_gpu_come_to_the_cpu(
    legacy: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tensors.pt"
    monkeypatch.setattr(torch.serialization, "location_tag", lambda storage: "cuda:3")
    torch.save(tensors(), path, _use_new_zipfile_serialization=not legacy)

    got = state_dict_of(read_content(path), path)["window"]

    assert got.device.type == "cpu"
    assert torch.equal(got, tensors()["window"])


@pytest.mark.parametrize("suffix", [".safetensors", ".bin"])
def test_safetensors_are_known_by_their_content(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"model{suffix}"
    model = CLAM.model()
    save_file({k: v.contiguous() for k, v in CLAM.state(model).items()}, path)
    bag = torch.randn(5, model.d_in)
    assert torch.equal(load(path)(bag), model(bag))


def zipped(path: Path, **members: bytes) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/").replace("_pkl", ".pkl"), content)


def compressed(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({}))


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda p: p.write_bytes(b""), "is empty; copy it again"),
        (lambda p: p.write_text("weights"), "is not a checkpoint; give a file written by"),
        (lambda p: p.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(99)), "is not a checkpoint; give"),
        (lambda p: p.write_bytes(pickle.dumps({"a": 1})), "is a pickle, but not one of torch.save"),
        (lambda p: p.write_bytes(b"\x80\x04"), "cannot be read as a checkpoint ("),
        (lambda p: zipped(p, readme=b""), "is a ZIP archive, but not one of torch.save"),
        (lambda p: zipped(p, a__data_pkl=b"\x80"), "cannot be read as a checkpoint ("),
        (compressed, "cannot be read as a checkpoint (data.pkl is compressed)"),
        (
            lambda p: zipped(p, a__data_pkl=b"", a__constants_pkl=b""),
            "is a TorchScript program, which FOCI does not run; save its state_dict()",
        ),
        (lambda p: torch.save(torch.zeros(3, 2), p), "holds a single tensor, not a state dict"),
        (lambda p: torch.save([1, 2], p), "holds list, not a state dict"),
        (lambda p: torch.save({"epoch": 3}, p), "holds no state dict; its entries are epoch"),
        (lambda p: torch.save({}, p), "holds no state dict; its entries are"),
        (
            lambda p: torch.save(torch.nn.Linear(2, 2), p),
            "holds a pickled object (torch.nn.modules.linear.Linear), which FOCI does not execute",
        ),
        (
            lambda p: torch.save({"model": torch.nn.Linear(2, 2)}, p),
            "holds a pickled object (torch.nn.modules.linear.Linear), which FOCI does not execute",
        ),
        (
            lambda p: torch.save(torch.nn.Linear(2, 2), p, _use_new_zipfile_serialization=False),
            "holds a pickled object (torch.nn.modules.linear.Linear), which FOCI does not execute",
        ),
        (lambda p: None, "does not exist; check the path"),
    ],
)
def test_what_is_no_checkpoint_is_refused_in_one_line(
    write: Any, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "s_0_checkpoint.pt"
    write(path)
    with pytest.raises(CheckpointError) as error:
        load(path)
    assert str(error.value).startswith(f"{path}: {message}")
    assert "\n" not in str(error.value)


@functools.cache  # addresses in memory are part of a legacy file, so the next may be longer
def example(kind: str) -> bytes:
    state = {"attention_net.0.weight": torch.randn(3, 2), "classifiers.weight": torch.randn(2, 3)}
    if kind == "safetensors":
        return save(state)
    file = io.BytesIO()
    torch.save({"state_dict": state}, file, _use_new_zipfile_serialization=kind == "zip")
    return file.getvalue()


@pytest.mark.parametrize("kind", ["zip", "legacy", "safetensors"])
def test_a_truncated_file_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    whole = example(kind)
    for length in np.linspace(0, len(whole) - 1, 60).astype(int):
        path.write_bytes(whole[:length])
        with pytest.raises(CheckpointError):
            state_dict_of(read_content(path), path)


@pytest.mark.parametrize("kind", ["zip", "legacy", "safetensors"])
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused(kind: str, tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "weights.pt"
    damaged = bytearray(example(kind))
    places = st.integers(0, len(damaged) - 1)
    for place, byte in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=4)):
        damaged[place] = byte
    path.write_bytes(damaged)
    with contextlib.suppress(CheckpointError):
        assert state_dict_of(read_content(path), path)


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
        *[
            ("clam-sb", lambda s, entry=entry: {entry: s, "epoch": 3})
            for entry in ("net", "weights", "ema", "model_state")
        ],
        *[
            ("clam-sb", lambda s, prefix=prefix: prefixed(s, prefix))
            for prefix in ("network.", "mil.", "model.network.", "module.mil.")
        ],
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
    path = tmp_path / "epoch=03.ckpt"
    state = prefixed(TRANSMIL.state(), "model.")
    forgotten(path, {"state_dict": {**state, "loss.weight": torch.ones(3)}, "global_step": 12})

    facts = inspect(path)

    assert facts.format == "TransMIL"
    assert facts.notes[0] == "part of the loss, left out: loss.weight"
    assert torch.equal(load(path).state_dict()["cls"], state["model.cls_token"])


def test_the_student_is_read_and_the_teacher_is_mentioned(tmp_path: Path) -> None:
    path, state = tmp_path / "fold_0_model_best_auc.pt", OFFICIAL["mhim-v1-gated"].state()
    torch.save({"model": state, "teacher": state}, path)
    assert "the file holds a teacher too; the student ('model') is read" in inspect(path).notes


def test_entries_that_are_no_tensors_are_mentioned(tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    torch.save({**CLAM.state(), "epoch": 3, "_metadata": {}}, path)
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
    storage = Storage(torch.float32, 1)
    storage.fill(bytes(4))
    content = {"classifiers.weight": StoredTensor(storage, 0, (2, 512), (0, 0))}
    with pytest.raises(CheckpointError, match=r"a.pt: classifiers.weight cannot be read"):
        state_dict_of(content, Path("a.pt"))


def test_averaged_weights_beside_the_model_are_mentioned(tmp_path: Path) -> None:
    path, state = tmp_path / "weights.pt", CLAM.state()
    torch.save({"ema": {key: 2 * one for key, one in state.items()}, "model": state}, path)
    assert torch.equal(load(path).state_dict()["head.weight"], state["classifiers.weight"])
    assert "the file holds averaged weights ('ema') too; 'model' is read" in inspect(path).notes


def test_metrics_of_a_lightning_module_are_left_out_and_named(tmp_path: Path) -> None:
    path = tmp_path / "last.ckpt"
    metrics = {
        "AUROC.confmat": torch.zeros(3, 3),
        "valid_metrics.MulticlassAccuracy.tp": torch.zeros(3, dtype=torch.long),
        "test_acc.total": torch.zeros((), dtype=torch.long),
        "train_f1.fp": torch.zeros(3),
    }
    state = {**prefixed(TRANSMIL.state(), "model."), **metrics}
    torch.save({"state_dict": state}, path)
    facts = inspect(path)
    assert facts.format == "TransMIL"
    assert facts.notes[0] == f"metrics, left out: {', '.join(metrics)}"
    for other in ("calibration.temperature", "test_time_norm.weight"):
        torch.save({"state_dict": {**state, other: torch.ones(1)}}, path)
        with pytest.raises(CheckpointError, match="is of no known architecture"):
            load(path)
