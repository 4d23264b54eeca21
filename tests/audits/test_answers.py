"""Cohorts whose answers are known, from their curves on."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from foci.audits import Curve, CurveTable, Summary
from foci.audits.records import Answers, AxisComparison, CountQuartiles
from tests.makers.curves import (
    CLASSES,
    Pair,
    Settings,
    rationale_table,
    slides,
    summarised,
    two,
)

N = 30  # fewer than 28 patients are never said to be the same
CHANCE: list[Pair] = [(40, None)] * N
"""Random orders need many tiles, and no first tiles of theirs are needed."""

HEADROOM: dict[str, list[Pair]] = {
    "native": [(9, 30)] * N, "evidence": [(2, 6)] * N, "random": CHANCE,
}  # fmt: skip
SAME: dict[str, list[Pair]] = {
    "native": [(3, 8)] * N, "evidence": [(3, 8)] * N, "random": CHANCE,
}  # fmt: skip


def summary_of(
    pairs: Mapping[str, Sequence[Pair]],
    settings: Settings = Settings(),  # noqa: B008
    **how: Any,
) -> Summary:
    n = len(next(iter(pairs.values())))
    cases = how.pop("cases", [f"P{i}" for i in range(n)])
    curves = rationale_table(pairs, **how)
    known = slides(cases, [None] * n, [one.n_tiles for one in curves.null_maps] or None)
    return summarised(curves, known, CLASSES, settings, [])


def answers_of(pairs: Mapping[str, Sequence[Pair]], **how: Any) -> Answers:
    answers = summary_of(pairs, **how).answers
    assert answers is not None
    return answers


def test_equal_rankings_and_a_believable_map() -> None:
    found = answers_of(SAME)
    assert (found.map.answer, found.order.answer) == ("yes", "native suffices")
    assert found.tiles.answer == f"8 tiles, on {N} of {N} slides"
    assert found.tiles.ranking == "native"
    assert (found.n_decided, found.n_cases) == (N, N)
    compared = found.order.against_native
    assert (compared.necessity.d, compared.necessity.result) == (0, "same")
    assert (compared.necessity.ratio, compared.necessity.n_ratio) == (1, N)


def test_a_better_order_is_headroom_and_is_the_one_to_look_at() -> None:
    found = answers_of(HEADROOM)
    assert (found.map.answer, found.order.answer) == ("yes", "headroom")
    assert (found.tiles.ranking, found.tiles.answer[:7]) == ("evidence", "6 tiles")
    assert found.tiles.sentences == [
        f"Under the evidence order 100% of the {N} decided slides have deciding tiles (91% to "
        "100%): alone they give the decision, and without them it changes.",
        "On those the median is 6 tiles (6 to 6), 1% of the slide's tiles; quartiles 6 and 6.",
        "2 would already suffice on the median slide (MSK).",
    ]
    native = found.order.against_native
    assert (native.sufficiency.d, native.sufficiency.n_differ) == (1, N)
    assert native.sufficiency.ratio == pytest.approx(2 / 9)
    assert (native.sufficiency.first, native.sufficiency.second) == (2, 9)


def test_one_tile_is_already_minimal_on_sufficiency() -> None:
    found = answers_of({"native": [(1, 30)] * N, "evidence": [(1, 6)] * N, "random": CHANCE})
    assert found.order.answer == "headroom"
    native = found.order.against_native
    assert not native.sufficiency.informative
    assert "Sufficiency: not informative, native already needs one tile on half of the slides." in (
        found.order.sentences
    )


def test_fewer_tiles_but_worse_deletion_is_mixed() -> None:
    found = answers_of({"native": [(9, 12)] * N, "selector": [(2, 40)] * N, "random": CHANCE})
    assert (found.order.candidate, found.order.answer) == ("selector", "mixed")
    assert found.tiles.ranking == "native"


@pytest.mark.parametrize(
    ("some", "others", "chance", "answer"),
    [
        # the right tiles in a bad order; as bad an order as the tiles are right
        ((60, 70), (40, 70), (40, None), "only as a pointer"),
        ((60, 70), (60, 70), (40, None), "worse than chance"),
        # tiles that suffice, and are needed less often than random ones, or never
        ((2, None), (2, 50), (40, 50), "sufficient, not decisive"),
        ((2, None), (2, None), (40, 50), "worse than chance"),
    ],
)
def test_a_map_may_be_better_on_one_axis_by_more_than_it_is_worse_on_the_other(
    some: Pair, others: Pair, chance: Pair, answer: str
) -> None:
    half = N // 2
    native = [some] * half + [others] * (N - half)
    found = answers_of({"native": native, "random": [chance] * N}, n_tiles=1000)
    assert (found.map.answer, found.order.answer) == (answer, "not assessable")


def test_chance_does_as_well() -> None:
    same: list[Pair] = [(5, 9)] * N
    found = answers_of({"native": same, "random": same})
    assert found.map.answer == "no better than chance"


@pytest.mark.parametrize(
    ("wins", "losses", "answer"),
    [(7, 5, "inconclusive"), (12, 0, "headroom"), (5, 0, "not assessable")],
)
def test_few_patients(wins: int, losses: int, answer: str) -> None:
    pairs: dict[str, list[Pair]] = {
        "native": [(9, 30)] * wins + [(2, 6)] * losses,
        "evidence": [(2, 6)] * wins + [(9, 30)] * losses,
        "random": [(100, None)] * (wins + losses),
    }
    found = answers_of(pairs).order
    assert found.answer == answer
    few = "Only 5 patients have slides that the model is sure of" in found.sentences[0]
    assert few == (wins + losses == 5)


def test_undecided_slides_only() -> None:
    found = summary_of(SAME, full=[0.7] * N)
    assert (found.answers.map.answer, found.answers.order.answer) == ("not assessable",) * 2
    assert found.answers.n_decided == 0
    assert found.answers.tiles.answer == "not assessable"
    why = "The model has decided no slide: there is no decision to recover."
    assert found.answers.map.sentences == found.answers.order.sentences == [why]
    decided = found.views["prediction"]["native"].decided
    assert (decided.n_slides, decided.msk, decided.undecided_crosses) == (0, None, 0)
    assert decided.relative.median.value == 3


def test_a_class_of_absence_is_named_and_stays_out_of_necessity() -> None:
    half = N // 2
    pairs: dict[str, list[Pair]] = {
        "native": [(3, 20)] * half + [(3, None)] * half,
        "evidence": [(3, 5)] * half + [(3, None)] * half,
        "random": CHANCE,
    }
    summary = summary_of(pairs, targets=[1] * half + [0] * half)
    by_class = summary.views["prediction"]["evidence"].decided.per_class  # type: ignore[union-attr]
    assert {name: (one.n_slides, one.decisive_share) for name, one in by_class.items()} == {
        "benign": (half, 0), "tumour": (half, 1),
    }  # fmt: skip
    found = summary.answers
    assert found.tiles.without == ["benign"]
    assert found.order.answer == "headroom"
    native = found.order.against_native
    assert (native.necessity.n_slides, native.necessity.d) == (half, 1)
    assert any("No deciding tiles found: benign." in s for s in found.tiles.sentences)


@pytest.mark.parametrize(("flip", "only"), [(None, ["tumour"]), (8, [])])
def test_a_map_that_knows_one_class_is_believed_for_that_class(
    flip: int | None, only: list[str]
) -> None:
    half = N // 2
    pairs: dict[str, list[Pair]] = {
        "native": [(3, 8)] * half + [(3, flip)] * half, "evidence": [(3, 8)] * N, "random": CHANCE,
    }  # fmt: skip
    found = answers_of(pairs, targets=[1] * half + [0] * half).map
    assert (found.answer, found.only) == ("yes", only)
    said = "This holds for slides predicted tumour; in the other class it finds no deciding tiles."
    assert (said in found.sentences) == bool(only)


@pytest.mark.parametrize(("n_found", "measure"), [(12, "decisive K"), (9, "deletion area")])
def test_decisive_k_is_compared_where_some_order_finds_a_set(n_found: int, measure: str) -> None:
    """Diluted by slides that hang on no tiles, the net share would be 0.4; and rare sets tell
    too little."""
    native: list[Pair] = [(3, 8)] * n_found + [(3, None)] * (N - n_found)
    found = answers_of({"native": native, "random": CHANCE}).map.comparison
    counted = n_found if measure == "decisive K" else N
    assert (found.necessity.measure, found.necessity.n_slides) == (measure, counted)
    assert found.necessity.d == n_found / counted


def test_patients_may_be_called_as_pseudo_patients_are_numbered() -> None:
    pairs: dict[str, list[Pair]] = {"native": [(3, 8), (3, None)] * 4, "random": [(40, None)] * 8}
    shares = [
        answers_of(pairs, cases=[names[i // 2] for i in range(8)]).tiles.share
        for names in ("0123", "abcd")
    ]
    assert shares[0] == shares[1]


def test_the_ratio_of_counts_does_not_depend_on_the_number_of_orders() -> None:
    """Ten orders with the counts of one, each on another slide: they need as many tiles."""
    counts = 2.0 ** np.arange(8)
    orders = np.stack([np.roll(counts, shift) for shift in range(8)])
    cases = [f"P{i}" for i in range(8)]
    found = AxisComparison.of("sufficiency", "MSK", counts, orders, cases)
    assert found.ratio == pytest.approx(1)
    assert (found.first, found.second) == (np.median(counts), np.median(counts))


def test_no_decisive_set_on_the_median_slide() -> None:
    rest: list[Pair] = [(3, None)] * (N - 6)
    summary = summary_of({"native": [(3, 8)] * 6 + rest, "random": CHANCE})
    found = summary.answers.tiles
    assert found.answer == f"8 tiles, on 6 of {N} slides"
    assert found.share.estimate == 6 / N
    assert "20% of the 30 decided slides have deciding tiles (9% to 38%)" in found.sentences[0]
    numbers = summary.views["prediction"]["native"].decided
    assert numbers.decisive.median.missing == "beyond"  # over all slides, in the details
    none = answers_of({"native": [(3, None)] * N, "random": CHANCE}).tiles
    assert (none.answer, none.count) == ("none found", None)


def test_a_spike_that_falls_back() -> None:
    ks = np.arange(1, 21)
    p = np.where(ks == 1, 0.95, np.where(ks < 11, 0.5, 0.95))
    gone = np.full(19, 0.95)
    curves = CurveTable.of(
        one
        for i in range(8)
        for one in (
            Curve(f"s{i}", "native", None, "insert", 20, ks, two(p, 1), two(0.95, 1)),
            Curve(f"s{i}", "native", None, "delete", 20, ks[:-1], two(gone, 1), two(0.95, 1)),
        )
    )
    known = slides([f"P{i}" for i in range(8)], [None] * 8, [20] * 8)
    found = summarised(curves, known, CLASSES, Settings(), []).views["prediction"]["native"].decided
    assert (found.msk.median.value, found.stable.median.value, found.fallback) == (1, 11, 1)
    assert (found.decisive.median.missing, found.decisive_share) == ("none", 0)
    assert found.exact


def test_what_is_undecided_and_a_larger_budget_change_nothing() -> None:
    alone = answers_of(HEADROOM)
    more = {name: [*rows, *[(None, None)] * 6] for name, rows in HEADROOM.items()}
    joined = answers_of(more, full=[0.95] * N + [0.6] * 6)
    larger = answers_of(HEADROOM, settings=Settings(k_max=512), k_max=512, n_tiles=600)
    for other in (joined, larger):
        assert other.map.answer == alone.map.answer
        assert other.order.answer == alone.order.answer
        assert (other.tiles.count, other.tiles.share) == (alone.tiles.count, alone.tiles.share)
        assert other.order.against_native == alone.order.against_native


def test_answers_at_other_thresholds() -> None:
    found = answers_of(HEADROOM, settings=Settings(kappas=(0.7, 0.9, 0.97)))
    assert [(one.kappa, one.n_decided, one.order) for one in found.sensitivity] == [
        (0.7, N, "headroom"), (0.9, N, "headroom"), (0.97, 0, "not assessable"),
    ]  # fmt: skip
    assert found.sensitive == []


def test_relative_answers_stand_beside_where_few_slides_are_decided() -> None:
    most = answers_of(HEADROOM, full=[0.95] * 21 + [0.7] * 9)
    assert most.relative == []
    few = answers_of(HEADROOM, full=[0.95] * 9 + [0.7] * 21)
    assert [one.share for one in few.relative] == [0.8, 0.9, 0.95, 0.99]
    assert {(one.n_slides, one.n_cases) for one in few.relative} == {(N, N)}
    assert {(one.map, one.order) for one in few.relative} == {("yes", "headroom")}
    assert few.n_decided == 9
    assert few.tiles.sentences[0] == (
        "The model is less than 0.9 sure of 21 of 30 slides: read the answers over all slides "
        "beside these."
    )


def test_relative_counts_follow_each_slide() -> None:
    """Low is 0.6 before the count: 0.8 of a full bag of 0.7 asks for 0.56, 0.9 of it for 0.63."""
    pairs: dict[str, list[Pair]] = {"native": [(9, 30)] * N, "random": CHANCE}
    asked = answers_of(pairs, full=[0.7] * N, settings=Settings(relative=True))
    found = {one.share: one for one in asked.relative}
    msk = {s: one.msk.median.value for s, one in found.items() if one.msk is not None}
    assert msk == {0.8: 1, 0.9: 9, 0.95: 9, 0.99: 9}
    decisive = {s: one.decisive.median.value for s, one in found.items() if one.decisive}
    assert decisive == dict.fromkeys(msk, 30)
    assert {one.ranking for one in asked.relative} == {"native"}
    assert asked.map.answer == "not assessable"


def test_relative_answers_where_asked_for_change_no_other() -> None:
    plain, asked = answers_of(SAME), answers_of(SAME, settings=Settings(relative=True))
    assert asked.model_copy(update={"relative": []}) == plain
    assert {(one.map, one.order) for one in asked.relative} == {("yes", "native suffices")}


def test_a_trained_selector_against_evidence() -> None:
    found = answers_of({**HEADROOM, "selector": [(3, 9)] * N})
    assert (found.order.selector.first, found.order.selector.second) == ("selector", "evidence")
    assert found.order.sentences[-1] == (
        "A trained order does not pay here: it is worse than evidence."
    )


@pytest.mark.parametrize("doubled", [False, True])
def test_slides_in_any_order_and_doubled_within_their_patient(doubled: bool) -> None:
    rng = np.random.default_rng(5)
    draw = lambda: [(int(a), int(b)) for a, b in rng.integers(1, 40, (N, 2))]  # noqa: E731
    pairs: dict[str, list[Pair]] = {name: draw() for name in ("native", "evidence", "random")}
    alone = answers_of(pairs)
    order = rng.permutation(N).tolist() * (2 if doubled else 1)
    other = answers_of(
        {name: [rows[i] for i in order] for name, rows in pairs.items()},
        cases=[f"P{i}" for i in order],
    )
    assert other.order.answer == alone.order.answer
    first, second = other.order.against_native, alone.order.against_native
    assert first is not None
    assert second is not None
    for axis in ("sufficiency", "necessity"):
        a, b = getattr(first, axis), getattr(second, axis)
        assert (a.d, a.low, a.high) == pytest.approx((b.d, b.low, b.high))
        assert (a.n_cases, a.n_differ, a.result) == (b.n_cases, b.n_differ, b.result)


# Quartiles of counts in which a missing one is infinite


NAN = float("nan")


def ends(counts: list[float], longer: list[bool]) -> list[tuple[float | None, str | None]]:
    found = CountQuartiles.over(np.array(counts), np.array(longer))
    return [(one.value, one.missing) for one in (found.low, found.median, found.high)]


def test_of_no_slide_there_are_none() -> None:
    assert CountQuartiles.over(np.empty((2, 0)), np.empty((2, 0), dtype=bool)) is None


def test_without_missing_counts_they_are_the_usual_ones() -> None:
    counts = [9.0, 1.0, 3.0, 5.0, 7.0]
    assert ends(counts, [True] * 5) == [(3, None), (5, None), (7, None)]


@pytest.mark.parametrize(("longer", "missing"), [([True] * 5, "beyond"), ([False] * 5, "none")])
def test_a_quantile_on_missing_slides_says_why(longer: list[bool], missing: str) -> None:
    assert ends([1.0, 2.0, 3.0, NAN, NAN], longer) == [(2, None), (3, None), (None, missing)]


def test_seeds_are_pooled() -> None:
    counts, longer = np.array([[1.0, 3.0], [5.0, NAN]]), np.zeros((2, 2), dtype=bool)
    pooled = CountQuartiles.over(counts, longer)
    assert pooled == CountQuartiles.over(counts.T, longer.T)
    assert pooled.median.value == 4
