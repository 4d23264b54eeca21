"""Synthetic tile features: only the witnesses carry the class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foci.demo.tissue import KINDS, TUMOUR, TissueMap

WIDTH = 64
"""Feature width D."""

_LENGTHS = {
    "stroma": 2.5,
    "fat": 2.5,
    "lymphoid": 5.5,
    "necrosis": 4.0,
    "normal epithelium": 4.5,
    "tumour": 2.5,
    "pen": 9.0,
    "fold": 9.0,
}
"""Dense benign tissue and artefacts outshine the tumour, so that a tile's norm says little."""

_NOISE = 0.5
_SITE = 0.15
_SLIDE = 0.1
_MIXTURE = (0.0, 1.0)
_UNEVEN = (0.5, 1.5)
_WITNESS = (2.6, 4.2)
_HARD = (0.3, 0.7)
_DISTRACTOR = (1.6, 2.6)


@dataclass(frozen=True, eq=False)
class Palette:
    """The directions in feature space that a cohort shares.

    Attributes:
        kinds: ``[len(KINDS), D]``, prototype of every kind of tile.
        classes: ``[C, D]``, the direction that witnesses of a class carry.
        sites: ``[S, D]``, shift of every site (stain and scanner).
    """

    kinds: NDArray[np.float64]
    classes: NDArray[np.float64]
    sites: NDArray[np.float64]


def mix_palette(rng: np.random.Generator, classes: int, sites: int) -> Palette:
    r"""Draw prototypes and class directions, all orthogonal, and the shift of every site.

    .. math:: \mu_t = \rho_t\, q_t, \quad v_c = q_{T + c}, \quad b_s \sim \mathcal{N}(0, 0.15^2 I)

    with orthonormal q, and lengths :math:`\rho_t` between 2.5 (tumour) and 9 (artefacts).
    """
    q = np.linalg.qr(rng.normal(size=(WIDTH, WIDTH)))[0].T
    lengths = np.array([_LENGTHS[kind] for kind in KINDS])
    return Palette(
        kinds=lengths[:, None] * q[: len(KINDS)],
        classes=q[len(KINDS) : len(KINDS) + classes],
        sites=rng.normal(scale=_SITE, size=(sites, WIDTH)),
    )


def encode(
    rng: np.random.Generator,
    palette: Palette,
    tissue: TissueMap,
    *,
    label: int,
    site: int,
    hard: bool,
) -> NDArray[np.float32]:
    r"""Features of the tiles of one slide.

    .. math:: x_i = \mu_{t(i)} + \sum_c a_{ic} v_c + b_{\text{site}} + s + 0.5\, \varepsilon_i,
       \qquad s \sim \mathcal{N}(0, 0.1^2 I) \text{ once per slide}, \quad
       \varepsilon_i \sim \mathcal{N}(0, I)

    with the amounts :math:`a_{ic}` of :func:`class_amounts`.

    Args:
        rng: Source of randomness.
        palette: Directions shared by the cohort.
        tissue: What the tiles show.
        label: Class of the slide.
        site: Where it was stained and scanned.
        hard: Whether its witnesses carry less.

    Returns:
        ``[N, D]``.
    """
    amounts = class_amounts(rng, tissue, label=label, classes=len(palette.classes), hard=hard)
    shift = palette.sites[site] + rng.normal(scale=_SLIDE, size=WIDTH)
    noise = rng.normal(scale=_NOISE, size=(len(tissue.kind), WIDTH))
    features = palette.kinds[tissue.kind] + amounts @ palette.classes + shift + noise
    return np.asarray(features, dtype=np.float32)


def class_amounts(
    rng: np.random.Generator, tissue: TissueMap, *, label: int, classes: int, hard: bool
) -> NDArray[np.float64]:
    r"""How much of each class's direction every tile holds.

    .. math:: a_{ic} = m_c\, u_{ic}\, [i \in \text{tumour}]
       + g\, w_i\, [i \in \text{witnesses}, c = y] + d_i\, [i \in \text{distractors}, c = o]

    - :math:`m_c \sim \mathcal{U}(0, 1)` once per slide, :math:`u_{ic} \sim \mathcal{U}(0.5, 1.5)`:
      the tumour as a whole is a random mixture, whatever the class y;
    - :math:`w_i \sim \mathcal{U}(2.6, 4.2)`, and g = 1, or :math:`g \sim \mathcal{U}(0.3, 0.7)` on
      a hard slide: the rationale;
    - :math:`d_i \sim \mathcal{U}(1.6, 2.6)` of a class o drawn once per slide, whatever y.

    Only the second term depends on y.

    Returns:
        ``[N, C]``.
    """
    n = len(tissue.kind)
    amounts = rng.uniform(*_MIXTURE, size=classes) * rng.uniform(*_UNEVEN, size=(n, classes))
    amounts[tissue.kind != TUMOUR] = 0
    strength = rng.uniform(*_HARD) if hard else 1.0
    amounts[:, label] += tissue.witness * strength * rng.uniform(*_WITNESS, size=n)
    amounts[:, rng.integers(classes)] += tissue.distractor * rng.uniform(*_DISTRACTOR, size=n)
    return amounts
