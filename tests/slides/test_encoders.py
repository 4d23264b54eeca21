"""The toy encoder is blind to nothing that it claims to see; UNI2-h is the published model.

Of UNI2-h: the published size, its own normalisation, and no weights but its own.
"""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from foci.errors import FociError
from foci.slides import encoders
from foci.slides.encoders import ENCODERS, EncoderOptions, fit_weights, read_weights
from tests.slides.torchvision_shim import without_torchvision

PUBLISHED = 681_394_176
"""681.4 million parameters, 343 tensors."""


def test_a_flat_tile_by_hand() -> None:
    tile = np.empty((1, 256, 256, 3), dtype=np.uint8)
    tile[...] = (255, 127, 0)
    features = encoders.encode(tile)[0]
    assert features.shape == (encoders.TOY_WIDTH,) == (48,)
    density = [0.0, -np.log(128 / 256), -np.log(1 / 256)]
    for colour, own in enumerate(density):
        part = features[14 * colour : 14 * colour + 14]
        assert part[0] == pytest.approx(np.log((own + 0.01) / 0.25), abs=1e-5)
        assert part[1] == pytest.approx(np.log(0.01 / 0.25), abs=1e-5), "no deviation"
        assert part[2:5] == pytest.approx([np.log((own + 0.01) / 0.25)] * 3, abs=1e-5)
        histogram = np.exp(part[5:]) / encoders.BINS - 0.01
        assert np.sort(histogram)[-1] == pytest.approx(1, abs=1e-5)
    assert features[-6:] == pytest.approx([np.log(0.01 / 0.1)] * 6, abs=1e-5), "no edges"


def test_stripes_are_edges_in_one_direction() -> None:
    tile = np.zeros((1, 64, 64, 3), dtype=np.uint8)
    tile[:, :, ::4] = 128
    across, down = encoders.encode(tile)[0][-6:].reshape(2, 3)
    assert across == pytest.approx([np.log((128 / 64 + 0.01) / 0.1)] * 3, abs=1e-5)
    assert down == pytest.approx([np.log(0.1)] * 3, abs=1e-5)


def test_the_toy_encoder_takes_no_weights(tmp_path: Path) -> None:
    with pytest.raises(FociError, match="not needed by the toy encoder"):
        ENCODERS["toy"](EncoderOptions(weights=tmp_path / "w.bin"))
    with pytest.raises(FociError, match="did you mean 'uni2-h'"):
        ENCODERS["uni2h"]


@pytest.fixture(scope="module")
def timm() -> None:
    with without_torchvision():
        pytest.importorskip("timm", reason="dev.py installs timm; pip install '.[dev]' does not")


@pytest.fixture(scope="module")
def shallow(timm: None) -> torch.nn.Module:
    torch.manual_seed(0)
    return encoders.create(depth=1).eval()


def test_the_arguments_give_the_published_size(timm: None) -> None:
    with torch.device("meta"):
        model = encoders.create()
    state = model.state_dict()
    assert len(state) == 343
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
    for differs in (
        "1 missing (reg_token)",
        "1 unexpected (head.weight)",
        "1 of another shape (norm.bias (768,) instead of (1536,))",
    ):
        assert differs in str(refused.value)
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
