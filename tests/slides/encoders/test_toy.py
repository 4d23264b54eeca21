"""The toy encoder: the same everywhere, and blind to nothing that it claims to see."""

import numpy as np
import pytest

from foci.errors import FociError
from foci.slides.encoders import BINS, ENCODERS, TOY_WIDTH, EncoderOptions, encode


def test_a_flat_tile_by_hand() -> None:
    tile = np.empty((1, 256, 256, 3), dtype=np.uint8)
    tile[...] = (255, 127, 0)
    features = encode(tile)[0]
    assert features.shape == (TOY_WIDTH,) == (48,)
    density = [0.0, -np.log(128 / 256), -np.log(1 / 256)]
    for colour, own in enumerate(density):
        part = features[14 * colour : 14 * colour + 14]
        assert part[0] == pytest.approx(np.log((own + 0.01) / 0.25), abs=1e-5)
        assert part[1] == pytest.approx(np.log(0.01 / 0.25), abs=1e-5), "no deviation"
        assert part[2:5] == pytest.approx([np.log((own + 0.01) / 0.25)] * 3, abs=1e-5)
        histogram = np.exp(part[5:]) / BINS - 0.01
        assert np.sort(histogram)[-1] == pytest.approx(1, abs=1e-5)
    assert features[-6:] == pytest.approx([np.log(0.01 / 0.1)] * 6, abs=1e-5), "no edges"


def test_stripes_are_edges_in_one_direction() -> None:
    tile = np.zeros((1, 64, 64, 3), dtype=np.uint8)
    tile[:, :, ::4] = 128
    across, down = encode(tile)[0][-6:].reshape(2, 3)
    assert across == pytest.approx([np.log((128 / 64 + 0.01) / 0.1)] * 3, abs=1e-5)
    assert down == pytest.approx([np.log(0.1)] * 3, abs=1e-5)


def test_it_takes_no_weights(tmp_path) -> None:
    with pytest.raises(FociError, match="not needed by the toy encoder"):
        ENCODERS["toy"](EncoderOptions(weights=tmp_path / "w.bin"))
    with pytest.raises(FociError, match="did you mean 'uni2-h'"):
        ENCODERS["uni2h"]
