"""Metrics of rankings once more, slowly and from their definition, in plain Python."""

import math
from collections.abc import Sequence

from tests.metrics.references import Row, mean


def best_first(scores: Row) -> list[int]:
    return sorted(range(len(scores)), key=lambda i: (-scores[i], i))


def jaccard_at_k(first: Row, second: Row, k: int) -> float:
    a, b = set(best_first(first)[:k]), set(best_first(second)[:k])
    return len(a & b) / len(a | b)


def spearman(first: Row, second: Row) -> float:
    def mid_ranks(values: Row) -> list[float]:
        return [sum(w < v for w in values) + sum(w == v for w in values) / 2 for v in values]

    a, b = mid_ranks(first), mid_ranks(second)
    da, db = [x - mean(a) for x in a], [x - mean(b) for x in b]
    scale = math.sqrt(math.fsum(x * x for x in da) * math.fsum(x * x for x in db))
    return math.fsum(x * y for x, y in zip(da, db, strict=True)) / scale if scale else math.nan


def precision_at_k(scores: Row, truth: Sequence[int], k: int) -> float:
    return sum(truth[i] for i in best_first(scores)[:k]) / k


def average_precision(scores: Row, truth: Sequence[int]) -> float:
    total = recall = 0.0
    for bar in sorted(set(scores), reverse=True):
        kept = [t for s, t in zip(scores, truth, strict=True) if s >= bar]
        total += (sum(kept) / sum(truth) - recall) * sum(kept) / len(kept)
        recall = sum(kept) / sum(truth)
    return total
