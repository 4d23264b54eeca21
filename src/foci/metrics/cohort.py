"""From one slide to many: curves of different lengths in, one row of numbers out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from foci.errors import FociError
from foci.metrics import inputs
from foci.metrics.censoring import restricted_mean
from foci.metrics.inputs import Floats
from foci.metrics.operating_point import aukc, msk, msk_cond, reach

T = TypeVar("T")

PAPER_KAPPAS = (0.7, 0.8, 0.9, 0.95)


def cohort_msk(
    probs: Sequence[ArrayLike],
    ks: Sequence[ArrayLike],
    targets: Sequence[int],
    kappa: float = 0.9,
    *,
    per_slide: Callable[..., int | None] = msk,
) -> Floats:
    """MSK of every slide as float64, NaN where it is not reached.

    Args:
        probs: One ``[len(ks), C]`` array per slide.
        ks: One array of reveal counts per slide.
        targets: The class followed on each slide.
        kappa: Operating confidence.
        per_slide: :func:`foci.metrics.msk` or :func:`foci.metrics.stable_msk`.

    >>> cohort_msk([[[0.05, 0.95]], [[0.4, 0.6], [0.3, 0.7]]], [[1], [1, 2]], targets=[1, 1])
    array([ 1., nan])
    """
    inputs.same_length(probs=probs, ks=ks, targets=targets)
    values = per_curve(lambda i: per_slide(probs[i], ks[i], targets[i], kappa), len(probs))
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def cohort_aukc(
    probs: Sequence[ArrayLike],
    ks: Sequence[ArrayLike],
    n_tiles: Sequence[int],
    targets: Sequence[int],
) -> float:
    """The paper's AUKC: the mean of :func:`foci.metrics.aukc` over slides.

    >>> cohort_aukc([[[0.25, 0.75]], [[0.5, 0.5]]], [[1], [1]], n_tiles=[1, 1], targets=[1, 1])
    0.625
    """
    inputs.same_length(probs=probs, ks=ks, n_tiles=n_tiles, targets=targets)
    return float(
        np.mean(per_curve(lambda i: aukc(probs[i], ks[i], n_tiles[i], targets[i]), len(probs)))
    )


@dataclass(frozen=True)
class SweepRow:
    """One row of the paper's threshold table, with the mean that does not drop failures."""

    kappa: float
    msk_cond: float
    reach: float
    restricted_mean: float


def kappa_sweep(
    probs: Sequence[ArrayLike],
    ks: Sequence[ArrayLike],
    targets: Sequence[int],
    kappas: Sequence[float] = PAPER_KAPPAS,
    k_max: int = 256,
) -> tuple[SweepRow, ...]:
    """MSK and Reach at several thresholds from the same stored curves.

    >>> rows = kappa_sweep([[[0.25, 0.75], [0.05, 0.95]]], [[1, 2]], [1], kappas=(0.7, 0.9, 0.99))
    >>> [(row.msk_cond, row.reach, row.restricted_mean) for row in rows]
    [(1.0, 1.0, 1.0), (2.0, 1.0, 2.0), (nan, 0.0, 256.0)]
    """
    rows = []
    for kappa in kappas:
        msks = cohort_msk(probs, ks, targets, kappa)
        rows.append(SweepRow(kappa, msk_cond(msks), reach(msks), restricted_mean(msks, k_max)))
    return tuple(rows)


def per_curve(measure: Callable[[int], T], n_slides: int) -> list[T]:
    """Measure every slide in turn; a refusal says which curve it was."""
    values = []
    for index in range(n_slides):
        try:
            values.append(measure(index))
        except FociError as error:
            where = f"curve {index}, {error.where}"
            raise FociError(where, error.what, error.fix) from error
    return values
