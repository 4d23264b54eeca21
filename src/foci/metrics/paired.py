"""Two rankings on the same slides, compared where both of them reach."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from foci.metrics import inputs
from foci.metrics.cards import card
from foci.metrics.inputs import Counts


@dataclass(frozen=True)
class PairedMSK:
    """Two rankings on the slides that both reach; NaN means if there is none."""

    base: float
    foci: float
    n_both: int
    n_base_only: int
    n_foci_only: int
    n_neither: int


@card(
    title="Paired MSK",
    symbol=r"\mathrm{MSK}_{\cap}",
    equation=r"|B|^{-1} \sum_{s \in B} \mathrm{MSK}_s, \quad "
    r"B = \{s : \text{both rankings reach}\}",
    direction="lower",
    range=(0.0, math.inf),
    needs="MSK of every slide under two rankings",
    does_not_show="the slides only one of the rankings reaches, which are counted beside it",
    source="FOCI",
)
def paired_msk(base: Counts, foci: Counts) -> PairedMSK:
    r"""Mean MSK of two rankings over the slides that both of them reach.

    .. math:: |B|^{-1} \sum_{s \in B} \mathrm{MSK}_s, \quad
       B = \{s : \mathrm{MSK}_s^{base}\ \text{and}\ \mathrm{MSK}_s^{foci}\ \text{exist}\}

    >>> paired_msk(base=[4, 6, 9, None], foci=[1, 3, None, None])
    PairedMSK(base=5.0, foci=2.0, n_both=2, n_base_only=1, n_foci_only=0, n_neither=1)
    """
    first, second = inputs.counts(base, "base"), inputs.counts(foci, "foci")
    inputs.same_length(base=first, foci=second)
    in_first, in_second = ~np.isnan(first), ~np.isnan(second)
    both = in_first & in_second
    return PairedMSK(
        base=float(first[both].mean()) if both.any() else math.nan,
        foci=float(second[both].mean()) if both.any() else math.nan,
        n_both=int(both.sum()),
        n_base_only=int((in_first & ~in_second).sum()),
        n_foci_only=int((~in_first & in_second).sum()),
        n_neither=int((~in_first & ~in_second).sum()),
    )
