"""Cohorts whose verdict is known, from their curves on."""

import numpy as np
import pytest

from foci import metrics
from foci.audits import Curve, CurveTable
from foci.audits.analysis.per_ranking import GREEDY
from foci.audits.analysis.verdict_sentence import verdict_sentence
from tests.makers.curves import CLASSES, Counts, Settings, slides, summarised, summary_of, two


def cohort_of(native: float, selector: float, random: float, n: int = 40) -> Counts:
    def around(average: float, seed: int) -> list[int | None]:
        drawn = 1 + np.random.default_rng(seed).poisson(average - 1, n)
        return [int(count) for count in drawn]

    return {
        "native": [around(native, 1)],
        "selector": [around(selector, 2), around(selector, 3)],
        "random": [around(random, seed) for seed in range(10, 15)],
    }


@pytest.mark.parametrize(
    ("native", "selector", "random", "name", "says"),
    [
        (9, 2, 6, "headroom", "fewer than the native ranking and"),
        (1, 1, 3, "saturated", "there is nothing to gain."),
        (4, 9, 12, "conflict", "more than the native ranking: keep the native ranking."),
        (38, 17, 5, "uninformative native ranking", "not shown to beat a random order"),
    ],
)
def test_the_four_verdicts(
    native: float, selector: float, random: float, name: str, says: str
) -> None:
    counts = cohort_of(native, selector, random)
    cases = [f"P{i // 2}" for i in range(40)]
    found = summary_of(counts, cases, ["tumour", "benign"] * 20)
    verdict = found.verdict
    assert verdict.verdict == name
    assert says in verdict.sentence
    want = metrics.judge(
        counts["native"][0],
        np.mean(np.array(counts["selector"], dtype=float), axis=0),
        np.array(counts["random"], dtype=float),
        cases,
        n_boot=200,
    )
    assert verdict.sentence == verdict_sentence(want)
    assert list(verdict.model_dump())[:3] == ["verdict", "sentence", "native"]
    assert verdict.room.low == want.room.low
    assert (verdict.n_slides, verdict.n_cases) == (40, 20)
    assert not any("No verdict" in note for note in found.notes)


def test_the_verdict_rests_on_the_prediction_whatever_stands_first() -> None:
    counts = cohort_of(9, 2, 6)
    cases = [f"P{i}" for i in range(40)]
    settings = Settings(target="label")
    found = summary_of(counts, cases, ["benign", "tumour"] * 20, settings=settings)
    assert found.first_view == "label"
    assert found.verdict.verdict == "headroom"
    assert found.views["label"]["native"].reach.estimate == 0.5


def test_a_slide_that_nobody_reaches_leaves_no_room() -> None:
    n = 20
    counts: Counts = {
        "native": [[None] * 5 + [1] * (n - 5)],
        "selector": [[None] * 5 + [1] * (n - 5)] * 2,
        "random": [[None] * 5 + [1] * (n - 5)] * 2,
    }
    found = summary_of(counts, [f"P{i}" for i in range(n)], [None] * n)
    verdict = found.verdict
    assert verdict.floor == verdict.native == (5 * 256 + 15) / n
    assert verdict.verdict == "saturated"
    assert verdict.near_minimal is True


def test_a_greedy_search_is_the_floor() -> None:
    counts = {**cohort_of(9, 2, 6), GREEDY: [[2] * 40]}
    found = summary_of(counts, [f"P{i}" for i in range(40)], [None] * 40)
    assert found.verdict.floor < 2  # the selector needs a single tile on some slides
    view = found.views["prediction"]
    base, foci = (view[name].restricted.estimate for name in ("native", "selector"))
    assert view["selector"].captured == pytest.approx((base - foci) / (base - 2))
    assert view["native"].captured is view[GREEDY].captured is None
    without = summary_of(cohort_of(9, 2, 6), [f"P{i}" for i in range(40)], [None] * 40)
    assert without.views["prediction"]["selector"].captured is None


def test_a_grid_that_starts_above_one_tile_claims_no_room_below_it() -> None:
    grid = np.array([8, 64, 256])
    curves = CurveTable.of(
        Curve(f"s{i}", ranking, seed, "insert", 500, grid, two(np.full(3, 0.95), 1), two(0.95, 1))
        for ranking, seed in (("native", None), ("selector", 0), ("random", 0))
        for i in range(6)
    )
    known = slides([f"P{i}" for i in range(6)], [None] * 6)
    verdict = summarised(curves, known, CLASSES, Settings(), []).verdict
    assert (verdict.native, verdict.floor, verdict.first_count) == (8, 8, 8)
    assert verdict.room.estimate == 0
    assert "0.0 tiles (0.0 to 0.0) above the fewest that counts from 8 on" in verdict.sentence
