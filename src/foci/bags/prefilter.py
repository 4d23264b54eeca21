"""Pre-filter: cap the size of a bag by feature norm, as in the paper."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from foci.bags.bag import Bag

N_CAP = 1024
"""The paper's cap."""


def prefilter(bag: Bag, n_cap: int | None = N_CAP) -> Bag:
    r"""Keep the ``n_cap`` tiles with the largest :math:`\lVert x_i \rVert_2`, in bag order.

    Ties go to the earlier tile. A bag that is small enough, or ``n_cap`` None, is left as it is.

    >>> bag = Bag("s", np.array([[3.0], [1.0], [2.0]], dtype=np.float32))
    >>> prefilter(bag, 2).tiles.tolist()
    [0, 2]
    """
    if n_cap is None or len(bag) <= n_cap:
        return bag
    squared = np.einsum("nd,nd->n", bag.features, bag.features, dtype=np.float64)
    keep = np.sort(np.argsort(-squared, kind="stable")[:n_cap])
    return replace(
        bag,
        features=bag.features[keep],
        coords=None if bag.coords is None else bag.coords[keep],
        kept=bag.tiles[keep],
        n_in_file=bag.n_total,
    )
