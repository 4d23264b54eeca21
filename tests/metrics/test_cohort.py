"""Numbers over a cohort: AUC, quantiles with missing counts, Reach by correctness, spread."""

import math
import statistics
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu
from sklearn.metrics import roc_auc_score

from foci.metrics import (
    CountQuantile,
    adaptive_budget,
    auc,
    geometric_mean_ratio,
    quantiles_with_missing,
    reach,
    reach_split,
    seed_spread,
    selected_only_auc,
    selected_probabilities,
)
from foci.metrics.cohort import class_auc_draws, class_aucs
from foci.metrics.stats import case_draws
from tests.metrics.strategies import Curve, curves, quick


def test_adaptive_budget_is_the_exact_floor() -> None:
    for n in range(1, 20_000, 7):
        assert adaptive_budget(n) == max(16, Fraction(3, 100) * n // 1)
    assert adaptive_budget(1024) == 30
    assert adaptive_budget(1024, alpha=0.05, k_min=60) == 60


def test_a_bag_smaller_than_the_budget_keeps_all_tiles() -> None:
    probs = np.column_stack([np.linspace(1, 0, 10), np.linspace(0, 1, 10)])
    got = selected_probabilities([probs], [range(1, 11)], [10], [[0.5, 0.5]], k=32)
    np.testing.assert_array_equal(got, [[0, 1]])


def test_each_slide_is_read_at_its_own_adaptive_count() -> None:
    ks = np.arange(1, 41)
    probs = np.column_stack([1 - ks / 100, ks / 100])
    full = [[0.5, 0.5]] * 3
    got = selected_probabilities(
        [probs, probs, probs[:9]], [ks, ks, ks[:9]], [1024, 90, 9], full, k=None
    )
    np.testing.assert_allclose(got[:, 1], [0.30, 0.16, 0.09])


@quick
@given(st.lists(curves(n_classes=2), min_size=1, max_size=5), st.integers(1, 300))
def test_is_the_row_of_the_curve_where_the_count_was_revealed(cohort: list[Curve], k: int) -> None:
    probs, ks = [c[0] for c in cohort], [c[1] for c in cohort]
    n_tiles = [301] * len(cohort)
    at = selected_probabilities(probs, ks, n_tiles, [[0.25, 0.75]] * len(cohort), k)
    for i, (rows, counts, _) in enumerate(cohort):
        if k in counts:
            np.testing.assert_array_equal(at[i], rows[list(counts).index(k)])
        else:
            assert np.isnan(at[i]).all()


def test_a_kept_bag_that_was_not_revealed_whole_is_the_full_bag() -> None:
    probs, ks = [[[0.6, 0.4]], [[0.3, 0.7]]], [[1], [1]]
    full = [[0.2, 0.8], [0.9, 0.1]]
    got = selected_probabilities(probs, ks, n_tiles=[20, 500], full=full, k=32)
    np.testing.assert_array_equal(got, [[0.2, 0.8], [np.nan, np.nan]])
    assert math.isnan(selected_only_auc(probs, ks, [20, 500], full, labels=[1, 0], k=32))
    assert selected_only_auc(probs, ks, [20, 20], full, labels=[1, 0], k=32) == 1


def test_it_is_the_auc_of_the_kept_tiles_for_any_order() -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(30) % 2
    full, selected, first, second = rng.dirichlet([1, 1], size=(4, 30))
    for order in (selected, first, second):
        got = selected_only_auc(order[:, None], [[32]] * 30, [999] * 30, full, labels)
        assert got == auc(order, labels)
        assert got != auc(full, labels)
    everything = selected_only_auc(selected[:, None], [[1]] * 30, [32] * 30, full, labels)
    assert everything == auc(full, labels)


def cohort(seed: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 6, size=(40, n_classes)).astype(float)  # many ties
    return weights / weights.sum(axis=1, keepdims=True), rng.permutation(np.arange(40) % n_classes)


@pytest.mark.parametrize("seed", range(5))
def test_binary_agrees_with_scikit_learn_and_mann_whitney(seed: int) -> None:
    probs, labels = cohort(seed, 2)
    want = roc_auc_score(labels, probs[:, 1])
    positive, negative = probs[labels == 1, 1], probs[labels == 0, 1]
    pairs = positive.size * negative.size
    assert auc(probs, labels) == pytest.approx(want, abs=1e-12)
    assert auc(probs[:, 1], labels) == pytest.approx(want, abs=1e-12)
    assert want == pytest.approx(mannwhitneyu(positive, negative).statistic / pairs, abs=1e-12)


@pytest.mark.parametrize("n_classes", [3, 5])
@pytest.mark.parametrize("seed", range(3))
def test_macro_one_vs_rest_agrees_with_scikit_learn(n_classes: int, seed: int) -> None:
    probs, labels = cohort(seed, n_classes)
    want = roc_auc_score(labels, probs, multi_class="ovr", average="macro")
    assert auc(probs, labels) == pytest.approx(want, abs=1e-12)


@quick
@given(st.lists(st.integers(0, 9), min_size=2, max_size=30))
def test_reversing_the_scores_mirrors_the_area(scores: list[int]) -> None:
    labels = np.arange(len(scores)) % 2
    mirrored = auc([-score for score in scores], labels)
    assert auc(scores, labels) == pytest.approx(1 - mirrored, abs=1e-12)


def test_all_ties_are_worth_one_half() -> None:
    assert auc([0.3, 0.3, 0.3], [0, 1, 1]) == 0.5


def by_pairs(scores: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> float:
    won = total = 0.0
    for i in np.flatnonzero(positive):
        for j in np.flatnonzero(~positive):
            pair = weights[i] * weights[j]
            won += pair * (float(scores[i] > scores[j]) + 0.5 * float(scores[i] == scores[j]))
            total += pair
    return won / total if total else float("nan")


@pytest.mark.parametrize("n_classes", [2, 3])
def test_draws_count_pairs_by_how_often_their_patients_are_drawn(n_classes: int) -> None:
    rng = np.random.default_rng(n_classes)
    probs = rng.dirichlet(np.ones(n_classes), 14).round(1)
    probs[:, 0] += 1 - probs.sum(axis=1)  # rounded: many ties
    labels = rng.integers(n_classes, size=14)
    cases = [f"P{i // 2}" for i in range(14)]
    draws = class_auc_draws(probs, labels, cases, n_boot=130, seed=5)
    case, weights = case_draws(cases, 14, 130, 5)
    assert draws.shape == (130, n_classes)
    for row in (0, 1, 99, 100, 129):
        want = [by_pairs(probs[:, c], labels == c, weights[row][case]) for c in range(n_classes)]
        np.testing.assert_allclose(draws[row], want)
    whole = [by_pairs(probs[:, c], labels == c, np.ones(14)) for c in range(n_classes)]
    np.testing.assert_allclose(class_aucs(probs, labels), whole)
    assert np.mean(whole) == pytest.approx(auc(probs, labels))


def test_a_class_that_is_absent_has_no_auc() -> None:
    assert np.isnan(class_aucs([[0.5, 0.5], [0.4, 0.6]], labels=[1, 1])).all()


ORDER = {None: 0, "beyond": 1, "none": 2}
MORE, NEVER = CountQuantile(None, "beyond"), CountQuantile(None, "none")

Slide = float | str
slides = st.lists(
    st.one_of(st.integers(1, 300), st.sampled_from(["beyond", "none"])), min_size=1, max_size=25
)
shares = st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.5, 0.7, 0.75, 0.9, 1.0])


def arrays(values: list[Slide]) -> tuple[list[float | None], list[bool]]:
    counts = [None if isinstance(value, str) else float(value) for value in values]
    return counts, [value == "beyond" for value in values]


def slow(values: list[Slide], q: float) -> CountQuantile:
    """By the definition, with the place as a fraction of whole numbers."""
    ordered = sorted((v for v in values if not isinstance(v, str)), key=float)
    line: list[Slide] = [*ordered, *(v for v in ("beyond", "none") for w in values if w == v)]
    tenths = round(100 * q) * (len(line) - 1)
    low, rest = divmod(tenths, 100)
    ends = [line[low]] if rest == 0 else [line[low], line[low + 1]]
    missing = [end for end in ends if isinstance(end, str)]
    if missing:
        return NEVER if "none" in missing else MORE
    return CountQuantile(float(ends[0]) + rest / 100 * (float(ends[-1]) - float(ends[0])), None)


def order(quantile: CountQuantile) -> tuple[int, float]:
    return ORDER[quantile.missing], quantile.value or 0.0


@quick
@given(slides, shares)
def test_equals_the_definition(values: list[Slide], q: float) -> None:
    got, want = quantiles_with_missing(*arrays(values), [q])[0], slow(values, q)
    assert got.missing == want.missing
    assert (got.value or 0) == pytest.approx(want.value or 0)


@quick
@given(st.lists(st.integers(1, 300), min_size=1, max_size=20))
def test_without_missing_counts_it_is_numpys(values: list[int]) -> None:
    got = quantiles_with_missing(values, [False] * len(values))
    want = np.quantile(values, [0.25, 0.5, 0.75])
    assert [quantile.value for quantile in got] == pytest.approx(want)


@quick
@given(slides, st.integers(0, 24), st.integers(0, 99))
def test_failing_never_looks_better_and_the_order_of_slides_is_nothing(
    values: list[Slide], at: int, seed: int
) -> None:
    failed = [*values]
    failed[at % len(values)] = "none"
    before, after = quantiles_with_missing(*arrays(values)), quantiles_with_missing(*arrays(failed))
    assert all(order(a) >= order(b) for a, b in zip(after, before, strict=True))
    mixed = [values[i] for i in np.random.default_rng(seed).permutation(len(values))]
    assert quantiles_with_missing(*arrays(mixed)) == before


def test_half_failed_is_infinite() -> None:
    assert quantiles_with_missing([1, None], [0, 1], [0.5]) == (MORE,)
    assert quantiles_with_missing([1, None, None], [0, 1, 0], [0, 0.5, 0.75]) == (
        CountQuantile(1.0, None),
        MORE,
        NEVER,
    )


def test_a_place_that_is_whole_stays_whole_in_floating_point() -> None:
    counts = [*range(1, 57), *[None] * 45]
    assert 100 * 0.55 > 55
    got = quantiles_with_missing(counts, [False] * 101, [0.55])
    assert got == (CountQuantile(56.0, None),)


@quick
@given(st.lists(st.tuples(st.integers(1, 300), st.integers(1, 300)), min_size=1, max_size=20))
def test_ratio_turns_over_with_the_rankings(pairs: list[tuple[int, int]]) -> None:
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    there, back = geometric_mean_ratio(a, b), geometric_mean_ratio(b, a)
    assert there.ratio * back.ratio == pytest.approx(1)
    assert there.n == back.n == len(pairs)
    assert geometric_mean_ratio(a, a).ratio == 1


def test_ratio_without_common_slides_is_nan() -> None:
    result = geometric_mean_ratio([1, None], [None, 2])
    assert math.isnan(result.ratio)
    assert result.n == 0


classified = st.lists(
    st.tuples(st.one_of(st.none(), st.integers(1, 9)), st.integers(0, 2), st.integers(0, 2)),
    min_size=1,
    max_size=20,
)


def test_spurious_reach_shows_on_the_wrong_slides() -> None:
    split = reach_split([1, None, 2, 5], predictions=[0, 0, 1, 1], labels=[0, 0, 0, 0])
    assert (split.correct, split.wrong) == (0.5, 1.0)
    assert (split.n_correct, split.n_wrong) == (2, 2)


def test_a_part_without_slides_has_no_reach() -> None:
    assert math.isnan(reach_split([1], [2], [2]).wrong)
    assert math.isnan(reach_split([1], [0], [2]).correct)


@quick
@given(classified)
def test_the_parts_weighted_by_size_give_reach(rows: list[tuple[int | None, int, int]]) -> None:
    msks, predictions, labels = (list(column) for column in zip(*rows, strict=True))
    split = reach_split(msks, predictions, labels)
    reached = sum(
        share * n
        for share, n in ((split.correct, split.n_correct), (split.wrong, split.n_wrong))
        if n
    )
    assert split.n_correct + split.n_wrong == len(rows)
    assert reached / len(rows) == pytest.approx(reach(msks))


@quick
@given(st.lists(st.floats(-100, 100), min_size=1, max_size=6), st.floats(-50, 50))
def test_equals_the_population_form_and_ignores_a_shift(values: list[float], shift: float) -> None:
    assert seed_spread(values) == pytest.approx(statistics.pstdev(values), abs=1e-9)
    moved = [value + shift for value in values]
    assert seed_spread(moved) == pytest.approx(seed_spread(values), abs=1e-9)


def test_one_seed_and_two() -> None:
    assert seed_spread([3.0]) == 0
    assert seed_spread([1.0, 3.0]) == 1  # the sample form would be 1.41
