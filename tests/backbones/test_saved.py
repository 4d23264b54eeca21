"""A trained backbone on disk: whole, verified, and read back bit by bit."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from foci import backbones
from foci.backbones import CallableBackbone
from foci.backbones.saved import load_folder, read_record
from foci.errors import CheckpointError
from tests.backbones.every import D_IN, EVERY, small


@pytest.mark.parametrize(("name", "preset"), EVERY)
def test_every_preset_comes_back_bit_by_bit(name: str, preset: str, tmp_path: Path) -> None:
    model = small(name, preset, 3).eval()
    again = load_folder(backbones.save(model, tmp_path / "m", classes=["a", "b", "c"]))
    assert backbones.fingerprint(again) == backbones.fingerprint(model)
    assert not any(p.requires_grad for p in again.parameters())
    assert not again.training
    x = torch.randn(9, D_IN)
    assert torch.equal(again(x), model(x))
    assert read_record(tmp_path / "m").classes == ("a", "b", "c")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_every_precision_comes_back_exactly(dtype: torch.dtype, tmp_path: Path) -> None:
    model = small("abmil", "paper", 2).to(dtype).eval()
    again = load_folder(backbones.save(model, tmp_path))
    assert {p.dtype for p in again.parameters()} == {dtype}
    assert backbones.fingerprint(again) == backbones.fingerprint(model)
    x = torch.randn(9, D_IN, dtype=dtype)
    assert torch.equal(again(x), model(x))


def test_mixed_precision_comes_back_exactly(tmp_path: Path) -> None:
    model = small("abmil", "paper", 2)
    model.get_submodule("head").double()
    again = load_folder(backbones.save(model, tmp_path))
    types = {name: tensor.dtype for name, tensor in again.state_dict().items()}
    assert types == {name: tensor.dtype for name, tensor in model.state_dict().items()}
    assert set(types.values()) == {torch.float32, torch.float64}
    assert backbones.fingerprint(again) == backbones.fingerprint(model)


def test_a_loaded_model_does_not_hang_on_its_file(tmp_path: Path) -> None:
    folder = backbones.save(small("abmil", "paper", 2), tmp_path)
    again = load_folder(folder)
    before = backbones.fingerprint(again)
    content = (folder / "weights.safetensors").read_bytes()
    (folder / "weights.safetensors").write_bytes(bytes(len(content)))
    assert backbones.fingerprint(again) == before


def test_same_weights_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        backbones.save(small("clam-sb", "paper", 2), tmp_path / name)
    for file in ("weights.safetensors", "backbone.json"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    backbones.save(small("abmil", "paper", 2), tmp_path / "a")
    torch.manual_seed(9)
    other = backbones.ARCHITECTURES["abmil"](**small("abmil", "paper", 2).config)
    backbones.save(other, tmp_path / "b")
    weights = (tmp_path / "b" / "weights.safetensors").read_bytes()
    (tmp_path / "a" / "weights.safetensors").write_bytes(weights)
    with pytest.raises(CheckpointError, match=r"weights\.safetensors: is not the weights that"):
        load_folder(tmp_path / "a")
    backbones.save(small("abmil", "paper", 3), tmp_path / "c")
    (tmp_path / "c" / "weights.safetensors").write_bytes(weights)
    with pytest.raises(CheckpointError, match=r"weights\.safetensors: does not fit backbone\.json"):
        load_folder(tmp_path / "c")


def test_incomplete_and_damaged_folders(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"backbone\.json: does not exist; give a folder"):
        load_folder(tmp_path)
    folder = backbones.save(small("abmil", "paper", 2), tmp_path / "m")
    content = (folder / "weights.safetensors").read_bytes()
    (folder / "weights.safetensors").write_bytes(content[:100])
    with pytest.raises(CheckpointError, match=r"weights\.safetensors: cannot be read"):
        load_folder(folder)
    (folder / "weights.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"weights\.safetensors: does not exist"):
        load_folder(folder)
    (folder / "backbone.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"backbone\.json: is not JSON"):
        load_folder(folder)
    for content in (b"\xff\xfe\x00{", b"[" * 100_000):
        (folder / "backbone.json").write_bytes(content)
        with pytest.raises(CheckpointError, match=r"backbone\.json: is not JSON"):
            load_folder(folder)
    (folder / "backbone.json").write_text(json.dumps({"format": 1}))
    with pytest.raises(CheckpointError, match=r"backbone\.json: does not describe a backbone"):
        load_folder(folder)


@pytest.mark.parametrize(
    ("number", "found"),
    [(0, "is of format 0"), (2, "is of format 2"), (None, "has no format number"),
     ("1", "has no format number")],
)  # fmt: skip
def test_another_format_is_refused_in_one_line(tmp_path: Path, number: Any, found: str) -> None:
    folder = backbones.save(small("abmil", "paper", 2), tmp_path / "m")
    path = folder / "backbone.json"
    facts = json.loads(path.read_text())
    assert facts.pop("format") == 1
    path.write_text(json.dumps(facts if number is None else {**facts, "format": number}))
    with pytest.raises(CheckpointError) as refused:
        backbones.load(folder)
    assert str(refused.value) == (
        f"{path}: {found}, this FOCI reads format 1; train again, or use the FOCI that wrote it"
    )


@pytest.mark.parametrize("wrong", [{"flavour": 3}, {"d": -3}, {"dropout": 3.0}, {"d": "wide"}])
def test_a_config_of_another_version_is_one_line(wrong: dict[str, Any], tmp_path: Path) -> None:
    folder = backbones.save(small("abmil", "paper", 2), tmp_path / "m")
    facts = json.loads((folder / "backbone.json").read_text())
    facts["config"] |= wrong
    del facts["own_sha256"]
    (folder / "backbone.json").write_text(json.dumps(facts))
    with pytest.raises(CheckpointError, match=r"backbone\.json: has a config that does not fit"):
        load_folder(folder)


def test_a_callable_cannot_be_saved(tmp_path: Path) -> None:
    model = CallableBackbone(lambda x: x.sum(0), d_in=2, n_classes=2)
    with pytest.raises(CheckpointError, match="callable: is not a registered architecture"):
        backbones.save(model, tmp_path)
