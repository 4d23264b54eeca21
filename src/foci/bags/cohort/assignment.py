r"""Assign whole patients to splits of given sizes.

Patients with the same stratum :math:`g` and number of slides :math:`z` are interchangeable, so a
placement is a table :math:`y_{gzs}`: how many of them go to split :math:`s`. The aim is

.. math:: \sum_z z\,y_{gzs} = Q_{gs} \quad\text{and}\quad \sum_{g,z} z\,y_{gzs} = T_s

with the quota :math:`Q_{gs}` of the stratum and the size :math:`T_s` of the split, in slides.

An integer programme (``scipy.optimize.milp``) would solve this too, but which of many equally good
placements it returns may change with the solver's version. A split must never change: hence the
search below, which is deterministic.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations
from math import gcd

Group = tuple[str, int]
"""Stratum, and slides per patient."""

Placement = Mapping[Group, tuple[int, ...]]
"""Patients per group and split."""

Quotas = Mapping[str, Sequence[int]]
"""Slides per stratum and split."""

_Rows = tuple[tuple[int, ...], ...]
_MOST_TRIALS = 20_000


def fill(groups: Mapping[Group, int], quotas: Quotas) -> Placement:
    """Fill the quotas of every stratum: large patients first, single slides last.

    A patient goes to the split whose quota is, in proportion, emptiest; where it fits nowhere, to
    the one with most room. No quota is then missed by as much as the largest patient of the
    stratum, and with enough single slides none is missed at all.

    Args:
        groups: Patients per group.
        quotas: Slides per stratum and split; they add up to the slides of the stratum.
    """
    room = {stratum: list(shares) for stratum, shares in quotas.items()}
    placement = {}
    for stratum, size in sorted(groups, key=lambda group: (-group[1], group[0])):
        quota, free = quotas[stratum], room[stratum]
        row = [0] * len(quota)
        for _ in range(groups[stratum, size]):
            fits = [s for s in range(len(quota)) if free[s] >= size]
            split = max(fits, key=lambda s: (2 * free[s] - size) / quota[s], default=None)
            if split is None:
                split = max(range(len(quota)), key=lambda s: free[s])
            row[split] += 1
            free[split] -= size
        placement[stratum, size] = tuple(row)
    return placement


def meet(placement: Placement, quotas: Quotas, counts: Sequence[int]) -> Placement:
    """Move patients until the splits have exactly ``counts`` slides, or as nearly as they can.

    Best-first search over moves of one patient, placements near the counts and the quotas first.
    The first search visits every combination of split sizes once, which is quick where there are
    many patients; the second visits every placement, so that for a small cohort "cannot be met"
    is a proof.
    """
    groups = tuple(placement)
    open_splits = [s for s, wanted in enumerate(counts) if wanted]

    def score(rows: _Rows) -> tuple[int, int]:
        current = dict(zip(groups, rows, strict=True))
        return miss(current, counts), imbalance(current, quotas)

    def sizes(rows: _Rows) -> tuple[int, ...]:
        return tuple(_slides_per_split(dict(zip(groups, rows, strict=True))))

    enough = least_miss(gcd(*(size for _, size in groups)), counts)
    best = tuple(placement.values())
    best = _search(best, score, sizes, open_splits, enough)
    best = _search(best, score, lambda rows: rows, open_splits, enough)
    return dict(zip(groups, best, strict=True))


def _search(
    start: _Rows,
    score: Callable[[_Rows], tuple[int, int]],
    state: Callable[[_Rows], object],
    splits: Sequence[int],
    enough: int,
) -> _Rows:
    """Best-first search; keeps one placement per ``state``, stops at a miss of ``enough``."""
    best, best_score = start, score(start)
    heap, seen = [(sum(best_score), start)], {state(start)}
    while heap and best_score[0] > enough and len(seen) < _MOST_TRIALS:
        _, rows = heapq.heappop(heap)
        for moved in _moves(rows, splits):
            if state(moved) not in seen:
                seen.add(state(moved))
                moved_score = score(moved)
                heapq.heappush(heap, (sum(moved_score), moved))
                if moved_score < best_score:
                    best, best_score = moved, moved_score
    return best


def _slides_per_split(placement: Placement) -> list[int]:
    """Size of every split."""
    rows = [[size * patients for patients in row] for (_, size), row in placement.items()]
    return [sum(column) for column in zip(*rows, strict=True)]


def miss(placement: Placement, counts: Sequence[int]) -> int:
    """Slides too many or too few, over all splits."""
    return sum(
        abs(n - wanted) for n, wanted in zip(_slides_per_split(placement), counts, strict=True)
    )


def least_miss(unit: int, counts: Sequence[int]) -> int:
    """The smallest possible :func:`miss` where every split size is a multiple of ``unit``.

    As many splits must be rounded up as the remainders add up to; best are the largest ones.

    >>> least_miss(4, [31, 4, 9])
    2
    """
    remainders = sorted(count % unit for count in counts)
    down = len(counts) - sum(remainders) // unit
    return sum(remainders[:down]) + sum(unit - rest for rest in remainders[down:])


def imbalance(placement: Placement, quotas: Quotas) -> int:
    """Largest distance of a stratum from its quota, in slides."""
    off = {stratum: [-share for share in shares] for stratum, shares in quotas.items()}
    for (stratum, size), row in placement.items():
        for s, patients in enumerate(row):
            off[stratum][s] += size * patients
    return max(abs(slides) for shares in off.values() for slides in shares)


def _moves(rows: _Rows, splits: Sequence[int]) -> Iterator[_Rows]:
    """Every placement that moving one patient leads to."""
    for index, row in enumerate(rows):
        for source, target in permutations(splits, 2):
            if row[source]:
                changed = list(row)
                changed[source] -= 1
                changed[target] += 1
                yield (*rows[:index], tuple(changed), *rows[index + 1 :])
