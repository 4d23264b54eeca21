"""Smooth random fields on a slide."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_WAVES = 24


def smooth_field(
    rng: np.random.Generator, places: NDArray[Any], wavelength: float
) -> NDArray[np.float64]:
    r"""A random field of mean 0 and variance 1, similar at places closer than ``wavelength``.

    .. math:: f(u) = \sqrt{2/M} \sum_{m=1}^{M} \cos(2\pi\, k_m \cdot u / \lambda + \varphi_m),
       \qquad k_m \sim \mathcal{N}(0, I / 4), \quad \varphi_m \sim \mathcal{U}(0, 2\pi)

    which tends to a Gaussian process with a squared-exponential kernel as M grows (M = 24 here).

    Args:
        rng: Source of randomness.
        places: ``[n, 2]``, where the field is wanted.
        wavelength: :math:`\lambda`, in the units of ``places``.

    Returns:
        ``[n]``.
    """
    waves = rng.normal(scale=0.5, size=(2, _WAVES))
    phases = rng.uniform(0, 2 * np.pi, size=_WAVES)
    angles = 2 * np.pi / wavelength * (places @ waves) + phases
    field: NDArray[np.float64] = np.sqrt(2 / _WAVES) * np.cos(angles).sum(axis=1)
    return field
