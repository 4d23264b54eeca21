"""Smooth random fields: their first two moments and their kernel."""

import numpy as np

from foci.demo.cohort import smooth_field


def test_mean_variance_and_covariance_follow_the_kernel() -> None:
    r"""k_m ~ N(0, I/4) gives E[f(0) f(r)] = exp(-(2 pi r / wavelength)^2 / 8)."""
    rng = np.random.default_rng(0)
    places = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 5.0], [60.0, 60.0]])
    draws = np.stack([smooth_field(rng, places, wavelength=10.0) for _ in range(8000)])
    distance = np.hypot(*places.T)
    expected = np.exp(-((2 * np.pi * distance / 10) ** 2) / 8)
    np.testing.assert_allclose(draws.mean(axis=0), 0, atol=0.05)
    np.testing.assert_allclose(draws.var(axis=0), 1, atol=0.05)
    np.testing.assert_allclose((draws[:, :1] * draws).mean(axis=0), expected, atol=0.05)


def test_it_depends_on_the_place_in_wavelengths() -> None:
    places = np.random.default_rng(1).uniform(0, 9, size=(20, 2))
    near, far = (
        smooth_field(np.random.default_rng(2), scale * places, wavelength=3.0 * scale)
        for scale in (1.0, 7.0)
    )
    np.testing.assert_allclose(near, far, atol=1e-10)
