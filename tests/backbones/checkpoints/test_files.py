"""Files of torch.save (new and old) and safetensors; everything else is refused in one line."""

import contextlib
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from foci.backbones import load
from foci.backbones.checkpoints.containers import state_dict_of
from foci.backbones.checkpoints.load import read_content
from foci.errors import CheckpointError
from tests.backbones.checkpoints.official_files import OFFICIAL

OFFICIAL_CLAM = OFFICIAL["clam-sb"]


def tensors() -> dict[str, torch.Tensor]:
    base = torch.arange(24.0).reshape(4, 6)
    return {
        "float": base,
        "transposed": base.T,
        "window": base[1:3, 2:5],
        "scalar": torch.tensor(2.5),
        "empty": torch.zeros(0, 3),
        "parameter": torch.nn.Parameter(torch.randn(2, 2)),
        **{
            str(dtype): torch.tensor([0, 1, 1]).to(dtype)
            for dtype in (
                torch.float64,
                torch.float16,
                torch.bfloat16,
                torch.int64,
                torch.int32,
                torch.int16,
                torch.int8,
                torch.uint8,
                torch.bool,
            )
        },
    }


@pytest.mark.parametrize("legacy", [False, True])
def test_tensors_equal_those_of_torch_load(legacy: bool, tmp_path: Path) -> None:
    path = tmp_path / "tensors.pt"
    torch.save(tensors(), path, _use_new_zipfile_serialization=not legacy)

    got = state_dict_of(read_content(path), path).tensors

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
    model = OFFICIAL_CLAM.model()
    save_file({k: v.contiguous() for k, v in OFFICIAL_CLAM.state(model).items()}, path)
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


def example(path: Path, kind: str) -> bytes:
    state = {"attention_net.0.weight": torch.randn(3, 2), "classifiers.weight": torch.randn(2, 3)}
    if kind == "safetensors":
        save_file(state, path)
    else:
        torch.save({"state_dict": state}, path, _use_new_zipfile_serialization=kind == "zip")
    return path.read_bytes()


@pytest.mark.parametrize("kind", ["zip", "legacy", "safetensors"])
def test_a_truncated_file_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    whole = example(path, kind)
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
    damaged = bytearray(example(path, kind))
    places = st.integers(0, len(damaged) - 1)
    for place, byte in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=4)):
        damaged[place] = byte
    path.write_bytes(damaged)
    with contextlib.suppress(CheckpointError):
        assert state_dict_of(read_content(path), path).tensors
