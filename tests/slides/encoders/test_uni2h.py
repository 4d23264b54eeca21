"""UNI2-h: the published size, its own normalisation, and no weights but its own."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from foci.errors import FociError
from foci.slides import encoders
from foci.slides.encoders import ENCODERS, EncoderOptions, fit_weights, read_weights
from tests.slides.encoders.torchvision_shim import without_torchvision

PUBLISHED = 681_394_176
"""681.4 million parameters, 343 tensors."""


@pytest.fixture(scope="module", autouse=True)
def timm() -> None:
    with without_torchvision():
        pytest.importorskip("timm", reason="dev.py installs timm; pip install '.[dev]' does not")
    return


@pytest.fixture(scope="module")
def shallow() -> torch.nn.Module:
    torch.manual_seed(0)
    return encoders.create(depth=1).eval()


def test_the_arguments_give_the_published_size() -> None:
    with torch.device("meta"):
        model = encoders.create()
    state = model.state_dict()
    assert len(state) == 343
    assert round(sum(value.numel() for value in state.values()) / 1e6, 1) == 681.4
    assert sum(value.numel() for value in state.values()) == PUBLISHED
    assert tuple(state["reg_token"].shape) == (1, 8, 1536)
    assert tuple(state["pos_embed"].shape) == (1, 256, 1536)


def test_a_shallow_copy_gives_1536_features(shallow: torch.nn.Module) -> None:
    tiles = np.random.default_rng(0).integers(0, 256, size=(2, 256, 256, 3), dtype=np.uint8)
    features = encoders.embed(shallow, tiles, "cpu")
    assert features.shape == (2, 1536)
    assert features.dtype == np.float32
    assert np.array_equal(features, encoders.embed(shallow, tiles, "cpu"))
    assert not np.allclose(features[0], features[1])


def test_tiles_are_scaled_and_normalised_as_imagenet_is() -> None:
    flat = np.empty((1, 256, 256, 3), dtype=np.uint8)
    flat[...] = (255, 128, 0)
    pixels = encoders.to_input(flat)
    assert tuple(pixels.shape) == (1, 3, 224, 224)
    expected = [(1 - 0.485) / 0.229, (128 / 255 - 0.456) / 0.224, -0.406 / 0.225]
    assert pixels[0, :, 100, 100].tolist() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("suffix", [".bin", ".safetensors"])
def test_weights_of_a_file_are_the_model_s(
    shallow: torch.nn.Module, tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"w{suffix}"
    state = shallow.state_dict()
    save_file(state, path) if suffix == ".safetensors" else torch.save(state, path)
    with torch.device("meta"):
        empty = encoders.create(depth=1)
    fit_weights(empty, read_weights(path), path)
    tiles = np.zeros((1, 224, 224, 3), dtype=np.uint8)
    again = encoders.embed(empty.eval(), tiles, "cpu")
    assert np.array_equal(again, encoders.embed(shallow, tiles, "cpu"))


def test_other_weights_are_refused_with_the_keys_that_differ(
    shallow: torch.nn.Module, tmp_path: Path
) -> None:
    state = {name: value for name, value in shallow.state_dict().items() if name != "reg_token"}
    state["head.weight"] = torch.zeros(2, 1536)
    state["norm.bias"] = torch.zeros(768)
    path = tmp_path / "other.bin"
    torch.save(state, path)
    with torch.device("meta"):
        model = encoders.create(depth=1)
    with pytest.raises(FociError) as refused:
        fit_weights(model, read_weights(path), path)
    said = str(refused.value)
    assert "1 missing (reg_token)" in said
    assert "1 unexpected (head.weight)" in said
    assert "1 of another shape (norm.bias (768,) instead of (1536,))" in said
    with pytest.raises(FociError, match=r"missing \(reg_token, blocks\.1\."):
        ENCODERS["uni2-h"](EncoderOptions(weights=path))


def test_weights_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(FociError, match="needs its weights, which are gated"):
        ENCODERS["uni2-h"](EncoderOptions())
    with pytest.raises(FociError, match="does not exist"):
        read_weights(tmp_path / "none.bin")
    (tmp_path / "text.safetensors").write_text("text")
    with pytest.raises(FociError, match="cannot be read"):
        read_weights(tmp_path / "text.safetensors")
    torch.save(torch.zeros(2), tmp_path / "tensor.bin")
    with pytest.raises(FociError, match="is not a state_dict"):
        read_weights(tmp_path / "tensor.bin")
    torch.save({"model": torch.nn.Linear(2, 2)}, tmp_path / "pickled.bin")
    with pytest.raises(FociError, match="does not execute"):
        read_weights(tmp_path / "pickled.bin")
