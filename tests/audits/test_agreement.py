"""Agreement of the stored rankings, against the metrics pair by pair."""

import numpy as np
import pytest

from foci import metrics
from foci.audits import RankedTiles
from foci.audits.numbers import chance_overlap
from tests.makers.curves import agreement, table, tiles

COUNTS = {"native": [[1, 2]], "selector": [[1, 2]] * 2, "random": [[1, 2]] * 3, "norm": [[1, 2]]}


def test_pairs_are_averaged_over_seeds_and_slides() -> None:
    curves = table(COUNTS, n_tiles=[50, 70])
    scores = tiles(curves, seed=4)
    found = {(row.first, row.second): row for row in agreement(curves, scores)}
    assert list(found) == [("native", "selector"), ("native", "norm"), ("selector", "norm")]
    pairs = [
        (slide.scores["native"], slide.scores[f"selector-{seed}"])
        for slide in scores
        for seed in (0, 1)
    ]
    row = found["native", "selector"]
    assert row.spearman == pytest.approx(np.mean([metrics.spearman(a, b) for a, b in pairs]))
    for k in (8, 32):
        want = np.mean([metrics.jaccard_at_k(a, b, k) for a, b in pairs])
        assert getattr(row, f"jaccard{k}") == pytest.approx(want)


def test_small_slides_and_constant_rankings_are_left_out() -> None:
    curves = table({"native": [[1, 2]], "norm": [[1, 2]]}, n_tiles=[10, 40])
    up = np.arange(40.0)
    scores = [
        RankedTiles("s0", np.arange(10), None, {"native": np.ones(10), "norm": np.arange(10.0)}),
        RankedTiles("s1", np.arange(40), None, {"native": up, "norm": -up}),
    ]
    (row,) = agreement(curves, scores)
    assert row.spearman == -1  # the first slide's native ranking is constant
    assert row.jaccard32 == 24 / 40  # 32 of 40 from either end, on the second slide alone
    # ties go by tile index: the first 8 of 10 against the last 8; 0 on the second slide
    assert row.jaccard8 == (6 / 10 + 0) / 2


def test_infinite_scores_rank_like_any_other() -> None:
    curves = table({"native": [[1]], "norm": [[1]]}, n_tiles=[10])
    scores = np.array([-np.inf, *range(8), np.inf])
    slide = RankedTiles("s0", np.arange(10), None, {"native": scores, "norm": np.arange(10.0)})
    (row,) = agreement(curves, [slide])
    assert (row.spearman, row.jaccard8) == (1, 1)


def test_one_ranking_has_nothing_to_agree_with() -> None:
    curves = table({"native": [[1]], "random": [[1]]})
    assert agreement(curves, tiles(curves)) == []
    assert agreement(table(COUNTS), []) == []


@pytest.mark.parametrize(("n", "k"), [(50, 8), (40, 32), (8, 8), (9, 1)])
def test_the_overlap_of_chance_is_that_of_random_sets(n: int, k: int) -> None:
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(4000):
        first, second = (set(rng.permutation(n)[:k].tolist()) for _ in range(2))
        draws.append(len(first & second) / len(first | second))
    assert chance_overlap(n, k) == pytest.approx(np.mean(draws), abs=0.02)
    assert np.isnan(chance_overlap(k - 1, k))
