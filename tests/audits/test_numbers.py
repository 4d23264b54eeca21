"""One ranking against another, the draws that all share, and the agreement of stored rankings."""

import math

import numpy as np
import pytest

from foci import metrics
from foci.audits import CurveTable, RankedTiles
from foci.audits.measure import measure_slides
from foci.audits.numbers import chance_overlap, resample
from foci.audits.records import Saving
from foci.metrics import case_means
from foci.metrics.inputs import defined_mean
from tests.makers.curves import (
    CLASSES,
    Counts,
    Settings,
    agreement,
    curve,
    flipping,
    slides,
    summarised,
    summary_of,
    table,
    tiles,
)


def saved(counts: Counts, cases: list[str], n_boot: int) -> Saving:
    """SHI of the selector against the native ranking."""
    labels = [None] * len(cases)
    found = summary_of(counts, cases, labels, Settings(n_boot=n_boot))
    saving = found.views["prediction"]["selector"].shi_native
    assert saving is not None
    return saving


def test_a_slide_is_reached_by_a_ranking_if_every_seed_reaches_it() -> None:
    counts = {"native": [[4, 6, None]], "selector": [[1, 2, 3], [3, None, 3]]}
    view = summary_of(counts, ["A", "B", "C"], [None] * 3).views["prediction"]
    paired = view["selector"].paired
    assert paired.model_dump() == {
        "base": 4.0, "foci": 2.0, "n_both": 1, "n_base_only": 1, "n_foci_only": 1, "n_neither": 0,
    }  # fmt: skip


def test_draws_without_a_reached_slide_are_left_out() -> None:
    # draws of (a, a) hold no native count: about a quarter of them
    result = saved({"native": [[None, 4]], "selector": [[1, 2]]}, ["a", "b"], n_boot=400)
    assert math.isfinite(result.low)
    assert math.isfinite(result.high)


def test_deletion_of_some_orders_is_dense_although_a_slide_has_one_tile() -> None:
    how = [{"n_tiles": 1}, {"n_tiles": 20}]
    curves = [curve(f"s{i}", "random", seed, 1, **how[i]) for seed in (0, 1) for i in (0, 1)]
    curves += [flipping(f"s{i}", "random", 0, None, **how[i]) for i in (0, 1)]
    known = slides(["A", "B"], [None] * 2, [1, 20])
    found = summarised(CurveTable.of(curves), known, CLASSES, Settings(), [])
    counts = found.views["prediction"]["random"].counts
    assert (counts.deletion, counts.n_deleted) == ("dense", 1)


# Draws


def test_rankings_share_their_draws() -> None:
    counts = {"native": [[4, 8, None, 12]], "selector": [[2, 4, 6, 8], [4, None, 6, 8]]}
    cases = ["A", "A", "B", "C"]
    measured = measure_slides(table(counts), slides(cases, [None] * 4), CLASSES, Settings())
    drawn = resample(measured, "prediction", 50)
    assert drawn["native"]["msk_cond"].shape == (50,)
    # each ranking by itself, from the same seed, gives the same draws
    for name in counts:
        own = measured.of(name)
        alone = case_means(own.msk.T, cases, 50)
        np.testing.assert_allclose(drawn[name]["msk_cond"], defined_mean(alone, axis=1))
        np.testing.assert_allclose(
            drawn[name]["restricted"],
            case_means(own.restricted.mean(axis=0)[:, None], cases, 50)[:, 0],
        )
    # a draw of patient B alone: native reaches nothing there
    missing = np.isnan(drawn["native"]["msk_cond"])
    np.testing.assert_array_equal(drawn["native"]["reach"][missing], 0)
    assert (drawn["selector"]["faithfulness"] == 0).all()


# Agreement of the stored rankings, against the metrics pair by pair


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
