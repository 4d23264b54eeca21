"""AUKC corrected for chance: minus the mean over seeded random orders."""

from __future__ import annotations

from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from foci.metrics import inputs
from foci.metrics.cards import card
from foci.metrics.curve.sufficiency import aukc


@card(
    title="Random-corrected AUKC",
    symbol=r"\mathrm{AUKC}_{-r}",
    equation=r"\mathrm{AUKC} - R^{-1} \sum_{r=1}^{R} \mathrm{AUKC}^{(r)}",
    direction="higher",
    range=(-1.0, 1.0),
    needs="the insertion curve of a ranking and of R random orders of the same bag",
    does_not_show="significance: R orders of one slide are no sample of patients",
    source="AOPC-R (Early et al., MILLI, 2022), applied to the paper's AUKC",
)
def random_corrected_aukc(
    probs: ArrayLike,
    ks: ArrayLike,
    n_tiles: SupportsIndex,
    target: SupportsIndex,
    random_probs: ArrayLike,
) -> float:
    r"""AUKC of a ranking minus the mean AUKC of random orders of the same bag.

    .. math:: \mathrm{AUKC} - R^{-1} \sum_{r=1}^{R} \mathrm{AUKC}^{(r)}

    0 means no better than chance, on every slide and for every classifier.

    Args:
        probs: ``[len(ks), C]`` under the ranking.
        ks: Reveal counts, the same for all orders.
        n_tiles: Candidate tiles N.
        target: The class followed.
        random_probs: ``[R, len(ks), C]`` under the random orders.

    >>> curve, chance = [[0.1, 0.9], [0.1, 0.9]], [[[0.5, 0.5], [0.1, 0.9]]]
    >>> round(random_corrected_aukc(curve, [1, 2], 2, 1, chance), 6)
    0.1
    """
    orders = inputs.probabilities(random_probs, "random_probs", ndim=3)
    curve, _, _ = inputs.curve(probs, ks, target)
    inputs.same_shape(orders, (len(orders), *curve.shape), "random_probs")
    ranked = aukc(curve, ks, n_tiles, target)
    return ranked - float(np.mean([aukc(order, ks, n_tiles, target) for order in orders]))
