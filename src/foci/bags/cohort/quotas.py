"""Largest-remainder apportionment: slides per stratum and split.

Not in SciPy or NumPy.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

Stratum = TypeVar("Stratum", bound=Hashable)


def largest_remainder(total: int, weights: Sequence[int]) -> list[int]:
    r"""Share ``total`` in proportion to ``weights``, in whole numbers that add up.

    Everyone gets :math:`\lfloor T w_i / \sum_j w_j \rfloor`; the rest goes, one each, to the
    largest remainders, the first of equal ones.

    >>> largest_remainder(10, [1, 1, 1])
    [4, 3, 3]
    >>> largest_remainder(1053, [729, 105, 209])
    [736, 106, 211]
    """
    whole = sum(weights)
    if whole == 0:
        return [0] * len(weights)
    shares = [total * weight // whole for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda i: -(total * weights[i] % whole))
    for i in by_remainder[: total - sum(shares)]:
        shares[i] += 1
    return shares


def stratum_quotas(
    sizes: Mapping[Stratum, int], counts: Sequence[int]
) -> dict[Stratum, tuple[int, ...]]:
    """Slides of every stratum for every split, so that both margins are met exactly.

    Split after split is shared among what the strata have left, by largest remainder, smallest
    split first, as rounding weighs most there.

    Args:
        sizes: Slides per stratum.
        counts: Slides per split; they add up to the same number.

    >>> stratum_quotas({"LUAD": 6, "LUSC": 4}, (7, 1, 2))
    {'LUAD': (4, 1, 1), 'LUSC': (3, 0, 1)}
    """
    left = dict(sizes)
    quotas = {stratum: [0] * len(counts) for stratum in sizes}
    for split in sorted(range(len(counts)), key=lambda i: counts[i]):
        shares = largest_remainder(counts[split], list(left.values()))
        for stratum, share in zip(sizes, shares, strict=True):
            quotas[stratum][split] = share
            left[stratum] -= share
    return {stratum: tuple(shares) for stratum, shares in quotas.items()}
