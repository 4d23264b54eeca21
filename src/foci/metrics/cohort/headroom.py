"""How many tiles a selector saves: SHI, captured headroom, MSK on the slides both rankings reach.

SHI compares conditional means, and each ranking may reach other slides; :func:`paired_msk` keeps
to the slides that both reach.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from foci.metrics import inputs
from foci.metrics.cards import card
from foci.metrics.curve.sufficiency import reached
from foci.metrics.inputs import Counts, Floats

EPS = 1e-8


def relative_saving(base: Floats, foci: Floats, eps: float = EPS) -> Floats:
    """SHI of every pair of counts: ``(base - foci) / (base + eps)``."""
    saving: Floats = (base - foci) / (base + eps)
    return saving


@card(
    title="Selection Headroom Index",
    symbol=r"\mathrm{SHI}",
    equation=r"(\overline{\mathrm{MSK}}_{base} - \overline{\mathrm{MSK}}_{foci}) / "
    r"(\overline{\mathrm{MSK}}_{base} + \epsilon)",
    direction="higher",
    range=(-math.inf, 1.0),
    needs="conditional MSK of the native ranking and of the selector, one value per seed",
    does_not_show="that the selector beats a random order, or that it reaches as many slides",
    source="the paper, Eq. SHI",
)
def shi(base: ArrayLike, foci: ArrayLike, eps: float = EPS) -> float:
    r"""Relative saving of tiles against the backbone's own ranking, on means over seeds.

    .. math:: \mathrm{SHI} = \frac{\overline{\mathrm{MSK}}_{base} - \overline{\mathrm{MSK}}_{foci}}
       {\overline{\mathrm{MSK}}_{base} + \epsilon}

    The seeds are averaged first and the ratio is taken once, as in the paper's table. Near one
    tile the ratio explodes: read it beside the counts.

    Args:
        base: Conditional MSK of the native ranking, a number or one per seed.
        foci: The same under the selector.
        eps: Guards against a base of 0.

    >>> round(shi(7.33, 3.21), 3)
    0.562
    >>> round(shi(base=[1.0, 1.2, 1.1], foci=[3.0, 3.4, 3.2]), 3)
    -1.909
    """
    before, after = inputs.mean_counts(base, "base").mean(), inputs.mean_counts(foci, "foci").mean()
    return float(relative_saving(np.asarray(before), np.asarray(after), eps))


@card(
    title="SHI against random",
    symbol=r"\mathrm{SHI}_{rand}",
    equation=r"(\overline{\mathrm{MSK}}_{rand} - \overline{\mathrm{MSK}}_{foci}) / "
    r"(\overline{\mathrm{MSK}}_{rand} + \epsilon)",
    direction="higher",
    range=(-math.inf, 1.0),
    needs="conditional MSK of several seeded random orders and of the selector",
    does_not_show="how good the native ranking is; that is SHI",
    source="FOCI; a selector can beat a proxy ranking and still lose to chance",
)
def shi_against_random(random: ArrayLike, foci: ArrayLike, eps: float = EPS) -> float:
    r"""Relative saving of tiles against seeded random orders.

    .. math:: \mathrm{SHI}_{rand} =
       \frac{\overline{\mathrm{MSK}}_{rand} - \overline{\mathrm{MSK}}_{foci}}
       {\overline{\mathrm{MSK}}_{rand} + \epsilon}

    >>> shi(base=38.0, foci=17.0) > 0 > shi_against_random(random=[5.2, 4.8], foci=17.0)
    True
    """
    inputs.mean_counts(random, "random")
    return shi(random, foci, eps)


@card(
    title="Captured headroom",
    symbol=r"H",
    equation=r"(\mathrm{K}_{base} - \mathrm{K}_{foci}) / (\mathrm{K}_{base} - "
    r"\mathrm{K}_{greedy})",
    direction="higher",
    range=(-math.inf, math.inf),
    needs="mean tile counts of the native ranking, the selector and a greedy search",
    does_not_show="the true optimum: a greedy set is small, not proven smallest",
    source="FOCI",
)
def captured_headroom(base: ArrayLike, foci: ArrayLike, greedy: ArrayLike) -> float:
    r"""Share of the tiles that could be saved which the selector does save.

    .. math:: H = \frac{K_{base} - K_{foci}}{K_{base} - K_{greedy}}

    on means over seeds. 1 means as small as the greedy set, 0 no better than the native ranking.
    NaN where the greedy search found nothing smaller: there is no headroom to capture.

    >>> captured_headroom(base=9.0, foci=3.0, greedy=1.0)
    0.75
    """
    start, end, bound = (
        float(inputs.mean_counts(values, name).mean())
        for values, name in ((base, "base"), (foci, "foci"), (greedy, "greedy"))
    )
    return (start - end) / (start - bound) if start > bound else math.nan


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
    in_first, in_second = reached(first), reached(second)
    both = in_first & in_second
    return PairedMSK(
        base=float(first[both].mean()) if both.any() else math.nan,
        foci=float(second[both].mean()) if both.any() else math.nan,
        n_both=int(both.sum()),
        n_base_only=int((in_first & ~in_second).sum()),
        n_foci_only=int((~in_first & in_second).sum()),
        n_neither=int((~in_first & ~in_second).sum()),
    )
