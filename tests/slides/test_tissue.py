"""Which pixels count as tissue: Otsu's threshold, and the mask to the last pixel."""

import hashlib

import numpy as np
import pytest
from PIL import Image

from foci.slides.tiling import otsu_threshold, stained


def variance_between(values: np.ndarray, threshold: int) -> float:
    low, high = values[values <= threshold], values[values > threshold]
    return float(len(low) * len(high) * (low.mean() - high.mean()) ** 2)


@pytest.mark.parametrize("seed", range(5))
def test_otsu_separates_best(seed: int) -> None:
    draw = np.random.default_rng(seed)
    values = np.concatenate([draw.normal(20, 6, 900), draw.normal(60 + 10 * seed, 12, 300)])
    values = values.clip(0, 255).astype(np.uint8)
    candidates = range(int(values.min()), int(values.max()))
    best = max(candidates, key=lambda one: variance_between(values, one))
    assert otsu_threshold(values) == best


def test_one_shade_has_no_threshold() -> None:
    assert otsu_threshold(np.full((4, 4), 77, dtype=np.uint8)) == 0


def test_the_mask_is_the_one_that_scikit_image_gives() -> None:
    # counts and hash are of median, threshold_otsu, closing and opening of scikit-image 0.26.0
    y, x = np.mgrid[:61, :83]
    shape = np.sin(x / 5) + np.cos(y / 7) > 0
    noise = (x * 7919 + y * 104729 + x * y * 31) % 23 - 11
    shades = np.where(shape[..., None], [200, 180, 196], [236, 232, 235]) + noise[..., None] * [
        1, -1, 0,
    ]  # fmt: skip
    mask = stained(Image.fromarray(shades.clip(0, 255).astype(np.uint8)))
    assert (mask.shape, mask.dtype) == ((61, 83), np.bool_)
    assert int(mask.sum()) == 3128
    assert hashlib.sha256(np.packbits(mask).tobytes()).hexdigest()[:16] == "c20c9be7c1804ab3"
