r"""Whole patients into splits of given sizes.

Patients who agree in stratum :math:`g` and number of slides :math:`z` are interchangeable, so a
placement is a table :math:`y_{gzs}`: how many of them go to split :math:`s`. Wanted is

.. math:: \sum_z z\,y_{gzs} = Q_{gs} \quad\text{and}\quad \sum_{g,z} z\,y_{gzs} = T_s

with the quota :math:`Q_{gs}` of the stratum and the size :math:`T_s` of the split, in slides.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations

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
    A small cohort is searched to the end, so that "cannot be met" is a proof; in a large one a
    few moves are enough.
    """
    groups = tuple(placement)
    open_splits = [s for s, wanted in enumerate(counts) if wanted]

    def score(rows: _Rows) -> tuple[int, int]:
        current = dict(zip(groups, rows, strict=True))
        return miss(current, counts), imbalance(current, quotas)

    start = tuple(placement.values())
    best, best_score = start, score(start)
    heap, seen = [(sum(best_score), start)], {start}
    while heap and best_score[0] and len(seen) < _MOST_TRIALS:
        _, rows = heapq.heappop(heap)
        for moved in _moves(rows, open_splits):
            if moved not in seen:
                seen.add(moved)
                moved_score = score(moved)
                heapq.heappush(heap, (sum(moved_score), moved))
                best, best_score = min((best, best_score), (moved, moved_score), key=_second)
    return dict(zip(groups, best, strict=True))


def miss(placement: Placement, counts: Sequence[int]) -> int:
    """Slides too many or too few, over all splits."""
    return sum(
        abs(sum(size * row[s] for (_, size), row in placement.items()) - wanted)
        for s, wanted in enumerate(counts)
    )


def imbalance(placement: Placement, quotas: Quotas) -> int:
    """Largest distance of a stratum from its quota, in slides."""
    off = {stratum: [-share for share in shares] for stratum, shares in quotas.items()}
    for (stratum, size), row in placement.items():
        for s, patients in enumerate(row):
            off[stratum][s] += size * patients
    return max(abs(slides) for shares in off.values() for slides in shares)


def _moves(rows: _Rows, splits: Sequence[int]) -> Iterator[_Rows]:
    """Every placement that one patient's move leads to."""
    for index, row in enumerate(rows):
        for source, target in permutations(splits, 2):
            if row[source]:
                changed = list(row)
                changed[source] -= 1
                changed[target] += 1
                yield (*rows[:index], tuple(changed), *rows[index + 1 :])


def _second(pair: tuple[_Rows, tuple[int, int]]) -> tuple[int, int]:
    return pair[1]
