"""A smaller budget of tiles, cut out of stored curves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from foci.audits.curves import Curve, CurveTable
from foci.errors import FociError
from foci.metrics import truncate


def within(curves: CurveTable, k_max: int) -> CurveTable:
    """The same audit as if no more than ``k_max`` tiles had ever been revealed.

    Deletion curves stay as they are: their counts are not a budget.
    """
    return CurveTable.of(_cut(curve, k_max) for curve in _every(curves))


def deletions(curves: CurveTable, ranking: str, seed: int | None) -> tuple[Curve, ...]:
    """Deletion curves of a ranking and seed; empty where none were measured."""
    try:
        return curves.get(ranking, seed, "delete")
    except FociError:
        return ()


def _every(curves: CurveTable) -> Iterator[Curve]:
    for ranking in curves.rankings:
        for seed in curves.seeds(ranking):
            yield from curves.get(ranking, seed)
            yield from deletions(curves, ranking, seed)


def _cut(curve: Curve, k_max: int) -> Curve:
    if curve.direction == "delete" or curve.ks[-1] <= k_max:
        return curve
    probs, ks = truncate(curve.probs, curve.ks, k_max)
    return replace(curve, probs=probs, ks=ks)
