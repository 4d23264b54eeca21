"""The error of an area on a grid of counts."""

import numpy as np
import pytest

from foci.metrics.curve import MAX_MEAN_DEVIATION, area_error, area_over_counts


def test_the_error_of_an_area_on_a_grid_bounds_the_difference_to_every_count() -> None:
    rng = np.random.default_rng(0)
    ks, every = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]), np.arange(1, 65)
    curves = 1 / (
        1 + np.exp(-(every - rng.uniform(1, 60, (200, 1))) / rng.uniform(0.5, 9, (200, 1)))
    )
    gap = np.abs(area_over_counts(curves, every) - area_over_counts(curves[:, ks - 1], ks))
    assert (gap <= area_error(curves[:, ks - 1], ks) + 1e-12).all()
    assert gap.max() > 1e-3
    hidden = np.where(np.isin(every, ks), 0.0, MAX_MEAN_DEVIATION * rng.choice([-1, 1], (200, 64)))
    strayed = np.clip(0.5 * curves + 0.25, 0, 1)
    gap = np.abs(
        area_over_counts(strayed + hidden, every) - area_over_counts(strayed[:, ks - 1], ks)
    )
    assert (gap <= area_error(strayed[:, ks - 1], ks) + 1e-12).all()
    flat = np.full(12, 0.5)
    assert area_error(flat, ks) == pytest.approx(MAX_MEAN_DEVIATION * (64 - 12) / 64)
    assert not area_error(curves, every).any()
    assert not area_error(np.ones((3, 1)), np.array([7])).any()
