"""Decisive K and the comparison of rankings once more, slowly, in plain Python."""

import math
from collections.abc import Sequence

from tests.metrics.references import Count, Row, first_largest, mean, nan


def decisive_at(kept: Row, rest: Row, target: int, kappa: float, beta: float | None) -> bool:
    lost = first_largest(rest) != target if beta is None else rest[target] <= beta
    return first_largest(kept) == target and kept[target] >= kappa and lost


def decisive_k(
    insert_probs: Sequence[Row],
    insert_ks: Sequence[int],
    delete_probs: Sequence[Row],
    delete_ks: Sequence[int],
    target: int,
    kappa: float,
    beta: float | None = None,
    *,
    stable: bool = False,
) -> int | None:
    kept, rest = (
        dict(zip(insert_ks, insert_probs, strict=True)),
        dict(zip(delete_ks, delete_probs, strict=True)),
    )
    known = [k for k in sorted(kept) if k in rest]
    for k in known:
        asked = [other for other in known if other >= k] if stable else [k]
        if all(decisive_at(kept[j], rest[j], target, kappa, beta) for j in asked):
            return int(k)
    return None


def net_win_share(a: Sequence[Count], b: Sequence[Sequence[Count]], tie: float) -> float:
    """One order against several; the place among infinite counts by hand."""
    wins = []
    for slide, own in enumerate(a):
        for order in b:
            other = order[slide]
            if nan(own) or nan(other):
                wins.append(float(nan(other)) - float(nan(own)))
            else:
                gap = (other or 0) - (own or 0)
                wins.append(0.0 if abs(gap) <= tie else math.copysign(1.0, gap))
    return mean(wins)


def geometric_mean_ratio(a: Sequence[Count], b: Sequence[Count]) -> tuple[float, int]:
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if not nan(x) and not nan(y)]
    tops, bottoms = (math.prod(pair[i] for pair in pairs) for i in (0, 1))
    return (tops / bottoms) ** (1 / len(pairs)) if pairs else math.nan, len(pairs)
