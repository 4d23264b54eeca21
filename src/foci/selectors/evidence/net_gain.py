"""Read orders of one bag both ways: tiles that suffice, tiles that decide, deletion area.

By these numbers a fit chooses its epoch and an audit its readout, on validation slides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from foci.metrics import decisive_k, deletion_drop, faithfulness_auc, msk
from foci.metrics.cohort.orders import order_differences
from foci.metrics.inputs import Floats, Integers
from foci.reveal import GRID, KAPPA, EmbeddedBag
from foci.reveal.candidates.pooled import pools
from foci.reveal.prefixes import default_counts


@dataclass(frozen=True)
class OrderReading:
    """Numbers of one order on one slide.

    Attributes:
        msk: Fewest first tiles that suffice; NaN where none do.
        decisive: Decisive K; NaN where there is none.
        area: Mean drop of the target's probability over the deletions; NaN with fewer than two.
    """

    msk: float
    decisive: float
    area: float


def read_orders(
    bag: EmbeddedBag, orders: Sequence[Tensor], target: int, *, kappa: float = KAPPA
) -> list[OrderReading]:
    """Reveal and delete the tiles of several orders, at every count of a pooling classifier.

    Other classifiers are read at the counts of :data:`foci.reveal.GRID`.

    Args:
        bag: The bag; two tiles or more.
        orders: Tile indices, most important first.
        target: The class followed.
        kappa: Operating confidence.
    """
    counts, full = _counts(bag), bag.full().numpy()
    ks = counts.numpy()
    inserted = bag.curves(orders, counts)
    deleted = bag.curves(orders, counts, "delete")
    return [
        _reading(up.numpy(), down.numpy(), ks, full, target, kappa)
        for up, down in zip(inserted, deleted, strict=True)
    ]


def net_gain(readings: Sequence[OrderReading], base: Sequence[OrderReading]) -> float:
    r"""How much better one order is than another over the same slides.

    .. math:: D_\mathrm{decisive} + \min(D_\mathrm{MSK}, 0) + 10^{-3} \bar A

    D is the mean over slides of +1 where the order needs fewer tiles than the base, -1 where it
    needs more, 0 where both need the same or both fail. Decisive sets come first, no number of
    them pays for sufficient ones, and the mean deletion area :math:`\bar A` breaks ties.
    """
    decisive, sufficient = (
        float(np.mean(order_differences([getattr(r, name) for r in readings],
                                        [getattr(r, name) for r in base])))
        for name in ("decisive", "msk")
    )  # fmt: skip
    areas = [0.0 if np.isnan(reading.area) else reading.area for reading in readings]
    return decisive + min(sufficient, 0.0) + 1e-3 * float(np.mean(areas))


def _reading(
    up: Floats, down: Floats, ks: Integers, full: Floats, target: int, kappa: float
) -> OrderReading:
    drops = deletion_drop(full, down, ks, target)
    return OrderReading(
        msk=_or_nan(msk(up, ks, target, kappa=kappa)),
        decisive=_or_nan(decisive_k(up, ks, down, ks, target, kappa)),
        area=faithfulness_auc(ks, drops, k_max=int(ks[-1])) if len(ks) > 1 else np.nan,
    )


def _counts(bag: EmbeddedBag) -> Tensor:
    if pools(bag.backbone):
        return default_counts(len(bag), "delete")[1:]
    return torch.tensor([k for k in GRID if k < len(bag)])


def _or_nan(count: int | None) -> float:
    return np.nan if count is None else float(count)
