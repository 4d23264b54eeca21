"""Areas under reveal and deletion curves: the trapezoid rule, AUPC, MoRF minus LeRF."""

from __future__ import annotations

from typing import Literal, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import trapezoid

from foci.metrics import inputs
from foci.metrics.cards import card
from foci.metrics.inputs import Floats, Integers

STRAY = 0.05
"""How far, on average, counts that were left out may lie outside the range of those around them."""


def area_over_counts(values: Floats, ks: Integers, divisor: int | None = None) -> Floats:
    """Trapezoid rule over the counts for every row of ``[..., K]``; a single value as it is.

    Args:
        values: One value per count.
        ks: ``[K]`` counts.
        divisor: What the area is divided by; None for the last count.
    """
    if len(ks) == 1:
        return values[..., 0]
    area: Floats = trapezoid(values, ks, axis=-1) / (ks[-1] if divisor is None else divisor)
    return area


def area_error(values: Floats, ks: Integers) -> Floats:
    r"""Bound on the error of :func:`area_over_counts` on a grid, against the area over every count.

    .. math:: \frac{1}{K_m} \sum_j (K_{j+1} - K_j - 1) \min\Big(1,\; \sigma +
       \max_{j-1 \le i \le j+2} p(K_i) - \min_{j-1 \le i \le j+2} p(K_i)\Big)

    It holds for every curve whose counts that were left out lie, on average, at most
    :math:`\sigma = 0.05` outside the range of the four counts around them; no bound without such an
    assumption is of use, because one more tile may change any answer. 0 where no count was left
    out.

    Args:
        values: ``[..., K]``, one value per count.
        ks: ``[K]`` counts.

    >>> import numpy as np
    >>> round(float(area_error(np.array([0.25, 0.5, 0.5, 0.75]), np.array([1, 2, 4, 8]))), 5)
    0.18125
    """
    if len(ks) == 1:
        return np.zeros(values.shape[:-1])
    ends = np.concatenate([values[..., :1], values, values[..., -1:]], axis=-1)
    around = np.stack([ends[..., start : len(ks) - 1 + start] for start in range(4)])
    reach = np.minimum(1.0, around.max(axis=0) - around.min(axis=0) + STRAY)
    error: Floats = (reach * (np.diff(ks) - 1)).sum(axis=-1) / ks[-1]
    return error


@card(
    title="Area under the perturbation curve",
    symbol=r"\mathrm{AUPC}",
    equation=r"m^{-1} \sum_{j=1}^{m} p_y(K_j)",
    direction="none",
    range=(0.0, 1.0),
    needs="one insertion or deletion curve",
    does_not_show="the same thing on another grid: every point weighs the same, however spaced",
    source="xMIL (Hense et al., 2024): the plain mean of the curve points",
)
def aupc(probs: ArrayLike, ks: ArrayLike, target: SupportsIndex) -> float:
    r"""Plain mean of the target's probability over the points of a curve.

    .. math:: \mathrm{AUPC} = m^{-1} \sum_{j=1}^{m} p_y(K_j)

    Higher is better for insertion, lower for deletion.

    >>> aupc([[0.5, 0.5], [0.25, 0.75]], ks=[1, 100], target=1)
    0.625
    """
    curve, _, followed = inputs.curve(probs, ks, target, lowest=0)
    return float(curve[:, followed].mean())


@card(
    title="MoRF minus LeRF",
    symbol=r"\Delta_{\mathrm{MoRF-LeRF}}",
    equation=r"\pm (K_m - K_1)^{-1} \int_{K_1}^{K_m} [p_y^{MoRF}(K) - p_y^{LeRF}(K)]\, dK",
    direction="higher",
    range=(-1.0, 1.0),
    needs="the curves of a ranking and of its reverse, same direction, same counts",
    does_not_show="how many tiles are enough, or a comparison with chance for one order alone",
    source="symmetric relevance gain (Bluecher et al., 2024); ROAD combined (Rong et al., 2022)",
)
def morf_minus_lerf(
    morf: ArrayLike,
    lerf: ArrayLike,
    ks: ArrayLike,
    target: SupportsIndex,
    direction: Literal["insert", "delete"] = "insert",
) -> float:
    r"""Area between the best-first and the worst-first curve; what both orders share cancels.

    .. math:: \pm \frac{1}{K_m - K_1} \int_{K_1}^{K_m}
       [p_y^{MoRF}(K) - p_y^{LeRF}(K)]\, dK

    by the trapezoid rule, with + for insertion (best tiles first should be higher) and - for
    deletion (removing the best first should be lower): higher is better either way, 0 for a
    ranking that carries no information. A single point gives its plain difference.

    >>> best, worst = [[0.1, 0.9], [0.1, 0.9]], [[0.6, 0.4], [0.2, 0.8]]
    >>> round(morf_minus_lerf(best, worst, ks=[1, 2], target=1), 6)
    0.3
    """
    known = direction in ("insert", "delete")
    inputs.require(known, "direction", f"is {direction!r}", "choose insert or delete")
    first, counts, followed = inputs.curve(morf, ks, target, lowest=0)
    last = inputs.same_shape(inputs.probabilities(lerf, "lerf"), first.shape, "lerf")
    gap = first[:, followed] - last[:, followed]
    if direction == "delete":
        gap = -gap
    return float(area_over_counts(gap, counts, divisor=int(counts[-1] - counts[0])))
