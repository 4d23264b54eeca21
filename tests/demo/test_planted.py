"""One planted slide."""

from dataclasses import replace

import numpy as np

from foci.demo.cohort import PlannedSlide, mix_palette, plant


def test_a_slide_at_40x_is_the_same_tissue_in_pixels_half_as_large() -> None:
    palette = mix_palette(np.random.default_rng(0), classes=2, sites=2)
    plan = PlannedSlide("s", "c", label=0, split="train", site=0, hard=False, magnification=20)
    at_20 = plant(np.random.default_rng(1), plan, palette)
    at_40 = plant(np.random.default_rng(1), replace(plan, magnification=40), palette)
    assert (at_20.patch_size, at_40.patch_size) == (256, 512)
    np.testing.assert_array_equal(2 * at_20.coords, at_40.coords)
    np.testing.assert_array_equal(at_20.features, at_40.features)
    for slide in (at_20, at_40):
        assert (slide.coords % slide.patch_size == 0).all()
        assert (slide.coords.max(axis=0) + slide.patch_size <= slide.size).all()
