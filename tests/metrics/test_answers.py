"""Every combination of results has one answer, and constructed cohorts get theirs."""

import itertools
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foci.errors import FociError
from foci.metrics import (
    Axis,
    AxisEvidence,
    Belief,
    BetterOrder,
    already_minimal,
    believable,
    better_order,
    better_than_proven,
    compare_orders,
    conclusive,
    null_pvalue,
    sensitive,
)
from foci.metrics.answers import BELIEVED
from tests.metrics.strategies import quick

NULL_PS = (None, 0.025, 0.05, 0.075)


def evidence(*, sized: tuple[bool, ...] = (True,), highs: tuple[float, ...]) -> list[Axis]:
    """No axis, and every result with net shares around the limits."""
    shares = {
        "better": (0.05, 0.1, 0.3),
        "worse": (-0.05, -0.1, -0.3),
        "same": (0.0,),
        "unclear": (0.12,),
    }
    made: list[Axis] = [None]
    for result, ds in shares.items():
        every = itertools.product(ds, highs, (True, False), sized)
        made += [AxisEvidence(result, *one) for one in every]  # type: ignore[arg-type]
    return made


def worse(axis: Axis) -> bool:
    return axis is not None and axis.result == "worse" and axis.d <= -0.1


def better(axis: Axis, by: float = 0.1) -> bool:
    return axis is not None and axis.informative and axis.result == "better" and axis.d >= by


def counts(axis: Axis) -> bool:
    return axis is not None and (axis.informative or worse(axis))


def settled(axis: Axis) -> bool:
    return axis is not None and axis.result != "unclear"


def belief_by_definition(
    sufficiency: Axis, necessity: Axis, null_p: float | None, n_cases: int, tied: bool
) -> Belief:
    """The steps of the rule, one after the other."""
    both = ((sufficiency, necessity), (necessity, sufficiency))
    by_test = better(sufficiency, by=-1) or better(necessity, by=-1)
    # step a: nothing to judge, or nothing to judge it by
    if tied or n_cases < 6 or not (counts(sufficiency) or counts(necessity)):
        return "not assessable"
    # step b: worse on an axis, and the other is not better by more
    for one, other in both:
        if one is not None and worse(one):
            outweighed = other is not None and better(other, by=-1) and other.d > -one.d
            if not outweighed:
                return "worse than chance"
    # without content-free maps nothing is believed, and nothing is called one of them
    if by_test and null_p is None:
        return "inconclusive"
    # step c: better by a size that counts, and better than content-free maps
    if null_p is not None and null_p <= 0.05:
        if better(sufficiency) and (better(necessity) or not counts(necessity)):
            return "yes"
        if better(necessity) and not counts(sufficiency):
            return "yes"
        if better(necessity):
            return "only as a pointer" if settled(sufficiency) else "inconclusive"
        if better(sufficiency):
            return "sufficient, not decisive" if settled(necessity) else "inconclusive"
    # step d: better, but not than content-free maps
    elif by_test:
        return "no better than a content-free map"
    # step e: surely not much better
    can_tell = [axis for axis in (sufficiency, necessity) if axis is not None and axis.informative]
    if can_tell and max(axis.high for axis in can_tell) < 0.2:
        return "no better than chance"
    # step f
    return "inconclusive"


def test_every_combination_has_the_belief_of_the_definition() -> None:
    found = set()
    for one, other in itertools.product(evidence(highs=(0.19, 0.2)), repeat=2):
        for null_p, n_cases, tied in itertools.product(NULL_PS, (5, 6), (False, True)):
            want = belief_by_definition(one, other, null_p, n_cases, tied)
            got = believable(one, other, null_p=null_p, n_cases=n_cases, tied=tied)
            assert got == want, (one, other, null_p, n_cases, tied)
            found.add(got)
    assert found == set(get_args(Belief))


def test_a_map_is_never_believed_both_ways_round() -> None:
    """Where all results are the other way round, as for the reversed map, a *yes* is a *no*."""
    turned = {"better": "worse", "worse": "better"}
    for one, other in itertools.product(evidence(highs=(0.5,)), repeat=2):
        back = [
            None if axis is None else replace(axis, result=turned.get(axis.result), d=-axis.d)
            for axis in (one, other)
        ]
        if believable(one, other, null_p=0.025, n_cases=30) == "yes":
            answer = believable(*back, null_p=0.025, n_cases=30)
            assert answer == "worse than chance"


def test_nothing_is_believed_without_content_free_maps_or_beside_better_ones() -> None:
    for one, other in itertools.product(evidence(highs=(0.19, 0.5)), repeat=2):
        for null_p in (None, 0.0501, 1.0):
            assert believable(one, other, null_p=null_p, n_cases=30) not in BELIEVED


def test_a_small_net_share_is_not_believed_however_sure() -> None:
    small = AxisEvidence("better", 0.06, 0.09)
    assert believable(small, small, null_p=0.025, n_cases=500) == "no better than chance"
    wide = replace(small, high=0.25)
    assert believable(wide, wide, null_p=0.025, n_cases=500) == "inconclusive"
    assert believable(wide, wide, null_p=0.1, n_cases=500) == "no better than a content-free map"


def test_the_limits_are_inside_up_to_rounding() -> None:
    tenth, third = 0.7 - 0.6, 0.05 + 1e-16
    assert tenth < 0.1
    ahead = AxisEvidence("better", tenth, 0.5)
    assert believable(ahead, ahead, null_p=third, n_cases=6) == "yes"
    behind = AxisEvidence("worse", -tenth, 0.0)
    assert believable(behind, None, null_p=None, n_cases=6) == "worse than chance"


def test_where_random_orders_already_need_one_tile_worse_counts_and_better_does_not() -> None:
    pointing = AxisEvidence("better", 0.4, 0.6)
    for result, d, answer in (
        ("worse", -0.53, "worse than chance"),
        ("worse", -0.4, "worse than chance"),
        ("worse", -0.2, "only as a pointer"),
        ("worse", -0.05, "yes"),
        ("unclear", -0.05, "yes"),
        ("same", 0.0, "yes"),
    ):
        minimal = AxisEvidence(result, d, 0.1, informative=False)  # type: ignore[arg-type]
        assert believable(minimal, pointing, null_p=0.025, n_cases=30) == answer
    alone = AxisEvidence("same", 0.0, 0.05, informative=False)
    assert believable(alone, None, null_p=0.025, n_cases=30) == "not assessable"


def order_by_definition(
    axes: tuple[Axis, Axis],
    over: tuple[Axis, Axis],
    null_p: float | None,
    belief: Belief | None,
    n_cases: int,
) -> BetterOrder:
    """The rows of the table, one after the other."""

    def matters(axis: Axis) -> bool:
        return axis is not None and better(axis) and axis.sized

    counting = [axis for axis in axes if axis is not None and counts(axis)]
    if n_cases < 6 or not counting:
        return "not assessable"
    if worse(axes[0]) or worse(axes[1]):
        return "mixed" if matters(axes[0]) or matters(axes[1]) else "native is better"
    won = [matters(axis) and better(chance) for axis, chance in zip(axes, over, strict=True)]
    if any(won) and null_p is not None and null_p <= 0.05:
        return "headroom"
    if any(axis.result == "unclear" or matters(axis) for axis in counting):
        return "inconclusive"
    return "native suffices" if belief == "yes" else "no better order found"


def test_every_combination_has_the_better_order_of_the_definition() -> None:
    chances: list[Axis] = [
        None,
        AxisEvidence("better", 0.3, 0.5),
        AxisEvidence("better", 0.05, 0.5),
        AxisEvidence("better", 0.3, 0.5, informative=False),
        AxisEvidence("unclear", 0.3, 0.5),
    ]
    others = list(itertools.product(chances, repeat=2))
    found = set()
    for axes in itertools.product(evidence(sized=(True, False), highs=(0.5,)), repeat=2):
        for over, null_p, n_cases in itertools.product(others, (None, 0.05, 0.075), (5, 6)):
            for belief in ("yes", "only as a pointer", None):
                got = better_order(
                    *axes,
                    sufficiency_over_random=over[0],
                    necessity_over_random=over[1],
                    null_p=null_p,
                    belief=belief,  # type: ignore[arg-type]
                    n_cases=n_cases,
                )
                want = order_by_definition(axes, over, null_p, belief, n_cases)  # type: ignore[arg-type]
                assert got == want, (axes, over, null_p, belief, n_cases)
                found.add(got)
    assert found == set(get_args(BetterOrder))


def test_only_a_map_that_is_believed_suffices() -> None:
    same = AxisEvidence("same", 0.0, 0.05)
    over = {"sufficiency_over_random": None, "necessity_over_random": None, "null_p": None}
    for belief in (*get_args(Belief), None):
        answer = better_order(same, same, **over, belief=belief, n_cases=30)
        assert answer == ("native suffices" if belief == "yes" else "no better order found")


def test_patients_are_counted() -> None:
    with pytest.raises(FociError, match="n_cases: is -1"):
        believable(AxisEvidence("same", 0.0, 0.1), None, null_p=None, n_cases=-1)


@quick
@given(st.integers(0, 20), st.lists(st.integers(0, 20), min_size=1, max_size=60))
def test_null_pvalue_counts_maps_that_do_as_well(d: int, others: list[int]) -> None:
    got = null_pvalue(d / 20, [one / 20 for one in others])
    assert got == (1 + len([one for one in others if one >= d])) / (1 + len(others))


def test_39_maps_that_know_nothing_allow_one_as_good() -> None:
    maps = np.linspace(-0.6, 0.6, 39)
    assert null_pvalue(0.7, maps) == 1 / 40
    assert null_pvalue(0.6, maps) == 2 / 40
    assert null_pvalue(0.1 + 0.2, [0.3] * 39) == 1  # rounding is no advantage
    assert null_pvalue(-1.0, maps) == 1


def test_sensitive_means_two_conclusive_answers() -> None:
    assert not sensitive({})
    assert not sensitive({0.7: "inconclusive", 0.8: "not assessable", 0.9: "headroom"})
    assert not sensitive({0.8: "headroom", 0.9: "headroom"})
    assert sensitive({0.7: "mixed", 0.8: "inconclusive", 0.9: "headroom"})
    assert not conclusive("inconclusive")


class Cohort:
    """MSK and decisive K of two rankings, one slide per patient, and ten random orders."""

    def __init__(self, n: int = 30, null_p: float = 0.025, **counts: Any) -> None:
        self.n, self.null_p, self.cases = n, null_p, [f"P{i}" for i in range(n)]
        rng = np.random.default_rng(0)
        self.counts = {
            "random_msk": rng.integers(10, 60, size=(10, n)).astype(float),
            "random_dk": rng.integers(60, 250, size=(10, n)).astype(float),
            **{name: np.multiply(value, np.ones(n)) for name, value in counts.items()},
        }

    def axis(self, what: str, one: str, other: str) -> AxisEvidence:
        a, b = (self.counts[f"{name}_{what}"] for name in (one, other))
        found = compare_orders(a, b, self.cases)
        informative = what != "msk" or not already_minimal(b)
        return AxisEvidence(found.result, found.d, found.high, informative)

    @property
    def belief(self) -> Belief:
        axes = (self.axis(what, "native", "random") for what in ("msk", "dk"))
        return believable(*axes, null_p=self.null_p, n_cases=self.n)

    @property
    def order(self) -> BetterOrder:
        return better_order(
            self.axis("msk", "selector", "native"),
            self.axis("dk", "selector", "native"),
            sufficiency_over_random=self.axis("msk", "selector", "random"),
            necessity_over_random=self.axis("dk", "selector", "random"),
            null_p=self.null_p,
            belief=self.belief,
            n_cases=self.n,
        )


def mostly(many: float, few: float) -> list[float]:
    return [many] * 23 + [few] * 7


@pytest.mark.parametrize(
    ("n", "native", "selector", "belief", "order"),
    [
        (30, (3, 20), (3, 20), "yes", "native suffices"),
        (12, (3, 20), (3, 20), "yes", "inconclusive"),  # too few patients to show sameness
        (30, (300, np.nan), (300, np.nan), "worse than chance", "no better order found"),
        (12, (1, 20), (1, [10] * 7 + [30] * 5), "yes", "inconclusive"),
        (12, (1, 20), (1, 10), "yes", "headroom"),
        (12, (1, 20), (1, 30), "yes", "native is better"),
        (5, (1, 20), (1, 10), "not assessable", "not assessable"),
        (30, (5, 20), (1, 40), "yes", "mixed"),  # fewer tiles, worse deletion
        (30, (mostly(200, 5), 20), (1, 20), "only as a pointer", "headroom"),
        (30, (2, mostly(np.nan, 20)), (2, 15), "sufficient, not decisive", "headroom"),
        (30, (200, 20), (1, 20), "worse than chance", "headroom"),  # as bad as it is good
    ],
)
def test_constructed_cohorts(
    n: int, native: tuple[Any, Any], selector: tuple[Any, Any], belief: str, order: str
) -> None:
    names = ("native_msk", "native_dk", "selector_msk", "selector_dk")
    cohort = Cohort(n, **dict(zip(names, (*native, *selector), strict=True)))
    assert (cohort.belief, cohort.order) == (belief, order)


def test_a_map_that_begins_with_the_worst_tiles_is_not_hidden_by_random_orders_of_one_tile() -> (
    None
):
    worst = Cohort(random_msk=np.ones((10, 30)), native_msk=mostly(6, 1), native_dk=20)
    assert worst.axis("msk", "native", "random").informative is False
    assert worst.axis("msk", "native", "random").d == pytest.approx(-23 / 30)
    assert worst.belief == "only as a pointer"
    assert Cohort(random_msk=np.ones((10, 30)), native_msk=6, native_dk=20).belief == (
        "worse than chance"
    )


def test_better_than_native_but_not_than_chance_is_no_headroom() -> None:
    cohort = Cohort(native_msk=1, native_dk=np.nan, selector_msk=1, selector_dk=300)
    assert cohort.axis("dk", "selector", "native").result == "better"
    assert cohort.axis("dk", "selector", "random").result == "worse"
    assert cohort.order == "inconclusive"


def test_better_than_native_but_not_than_a_content_free_map_is_no_headroom() -> None:
    counts = {"native_msk": 1, "native_dk": 20, "selector_msk": 1, "selector_dk": 10}
    assert Cohort(**counts).order == "headroom"
    assert Cohort(**counts, null_p=0.075).order == "inconclusive"


@pytest.mark.parametrize(
    ("low", "high", "n_cases", "answer"),
    [
        (0.8, 0.9, 6, "native suffices"),
        (0.79, 0.9, 6, "inconclusive"),
        (0.3, 0.79, 6, "headroom"),
        (0.3, 0.8, 6, "inconclusive"),
        (0.9, 1.0, 5, "not assessable"),
        (None, None, 9, "not assessable"),
    ],
)
def test_efficiency_says_whether_there_is_a_better_order(
    low: float | None, high: float | None, n_cases: int, answer: str
) -> None:
    assert better_than_proven(low, high, n_cases) == answer
