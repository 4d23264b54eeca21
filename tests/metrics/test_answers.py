"""Every combination of results has one answer, and constructed cohorts get theirs."""

import itertools
from typing import Any, get_args

import numpy as np
import pytest

from foci.errors import FociError
from foci.metrics import (
    Axis,
    Belief,
    BetterOrder,
    already_minimal,
    believable,
    better_order,
    compare_orders,
    conclusive,
    sensitive,
)

RESULTS: tuple[Axis, ...] = ("better", "worse", "same", "unclear", None)
PAIRS = list(itertools.product(RESULTS, RESULTS))
RANDOM = {"sufficiency_over_random": "better", "necessity_over_random": "better"}


def beliefs_by_definition(sufficiency: Axis, necessity: Axis) -> list[str]:
    """All named answers whose words in the definition fit."""
    axes = [axis for axis in (sufficiency, necessity) if axis is not None]
    if not axes:
        return ["not assessable"]
    holds = {
        "yes": all(axis == "better" for axis in axes),
        "only as a pointer": necessity == "better" and sufficiency in ("same", "worse"),
        "sufficient, not decisive": sufficiency == "better" and necessity in ("same", "worse"),
        "no better than chance": all(axis in ("same", "worse") for axis in axes),
    }
    return [name for name, true in holds.items() if true] or ["inconclusive"]


@pytest.mark.parametrize(("sufficiency", "necessity"), PAIRS)
def test_every_pair_of_results_has_one_belief(sufficiency: Axis, necessity: Axis) -> None:
    fitting = beliefs_by_definition(sufficiency, necessity)
    assert [believable(sufficiency, necessity, n_cases=6)] == fitting
    assert believable(sufficiency, necessity, n_cases=5) == "not assessable"


def orders_by_definition(
    sufficiency: Axis, necessity: Axis, over: tuple[Axis, Axis], believed: bool
) -> list[str]:
    pairs = [(sufficiency, necessity, over[0]), (necessity, sufficiency, over[1])]
    axes = [axis for axis in (sufficiency, necessity) if axis is not None]
    if not axes:
        return ["not assessable"]
    same = all(axis == "same" for axis in axes)
    holds = {
        "headroom": any(
            one == "better" and other != "worse" and chance == "better"
            for one, other, chance in pairs
        ),
        "mixed": any(one == "better" and other == "worse" for one, other, _ in pairs),
        "native is better": any(one == "worse" and other != "better" for one, other, _ in pairs),
        "native suffices": same and believed,
        "no better order found": same and not believed,
    }
    return [name for name, true in holds.items() if true] or ["inconclusive"]


@pytest.mark.parametrize(("sufficiency", "necessity"), PAIRS)
def test_every_combination_has_one_better_order(sufficiency: Axis, necessity: Axis) -> None:
    for over in PAIRS:
        for belief in (*get_args(Belief), None):
            settings: dict[str, Any] = {
                "sufficiency_over_random": over[0],
                "necessity_over_random": over[1],
                "belief": belief,
            }
            fitting = orders_by_definition(sufficiency, necessity, over, belief == "yes")
            assert [better_order(sufficiency, necessity, **settings, n_cases=6)] == fitting
            few = better_order(sufficiency, necessity, **settings, n_cases=5)
            assert few == "not assessable"


def test_every_name_can_be_the_answer() -> None:
    beliefs = {believable(s, n, n_cases=9) for s, n in PAIRS}
    assert beliefs == set(get_args(Belief))
    found = {
        better_order(s, n, **RANDOM, belief=belief, n_cases=9)  # type: ignore[arg-type]
        for s, n in PAIRS
        for belief in ("yes", "inconclusive")
    }
    assert found == set(get_args(BetterOrder))


def test_an_unknown_result_is_refused() -> None:
    with pytest.raises(FociError, match="axis: is 'already minimal'"):
        believable("already minimal", "better", n_cases=9)  # type: ignore[arg-type]
    with pytest.raises(FociError, match="axis: is 'good'"):
        better_order(
            "better",
            "better",
            sufficiency_over_random="good",  # type: ignore[arg-type]
            necessity_over_random=None,
            belief=None,
            n_cases=9,
        )


def test_sensitive_means_two_conclusive_answers() -> None:
    assert not sensitive({})
    assert not sensitive({0.7: "inconclusive", 0.8: "not assessable", 0.9: "headroom"})
    assert not sensitive({0.8: "headroom", 0.9: "headroom"})
    assert sensitive({0.7: "mixed", 0.8: "inconclusive", 0.9: "headroom"})
    assert not conclusive("inconclusive")


class Cohort:
    """MSK and decisive K of three rankings, one slide per patient, and ten random orders."""

    def __init__(self, n: int = 30, **counts: Any) -> None:
        self.n, self.cases = n, [f"P{i}" for i in range(n)]
        self.counts = {name: np.broadcast_to(value, (n,)) for name, value in counts.items()}
        rng = np.random.default_rng(0)
        self.random = {
            "msk": rng.integers(10, 60, size=(10, n)).astype(float),
            "dk": rng.integers(60, 250, size=(10, n)).astype(float),
        }

    def axis(self, what: str, one: str, other: str) -> Axis:
        table = {f"random_{key}": value for key, value in self.random.items()}
        named = {**self.counts, **table}
        if what == "msk" and already_minimal(named[f"{other}_msk"]):
            return None
        return compare_orders(named[f"{one}_{what}"], named[f"{other}_{what}"], self.cases).result

    @property
    def belief(self) -> Belief:
        axes = (self.axis(what, "native", "random") for what in ("msk", "dk"))
        return believable(*axes, n_cases=self.n)

    @property
    def order(self) -> BetterOrder:
        return better_order(
            self.axis("msk", "selector", "native"),
            self.axis("dk", "selector", "native"),
            sufficiency_over_random=self.axis("msk", "selector", "random"),
            necessity_over_random=self.axis("dk", "selector", "random"),
            belief=self.belief,
            n_cases=self.n,
        )


@pytest.mark.parametrize(
    ("n", "native", "selector", "belief", "order"),
    [
        (30, (3, 20), (3, 20), "yes", "native suffices"),
        (12, (3, 20), (3, 20), "yes", "inconclusive"),  # too few patients to show sameness
        (30, (300, np.nan), (300, np.nan), "no better than chance", "no better order found"),
        (12, (1, 20), (1, [10] * 7 + [30] * 5), "yes", "inconclusive"),
        (12, (1, 20), (1, 10), "yes", "headroom"),
        (12, (1, 20), (1, 30), "yes", "native is better"),
        (5, (1, 20), (1, 10), "not assessable", "not assessable"),
        (30, (5, 20), (1, 40), "yes", "mixed"),  # fewer tiles, worse deletion
        (30, (200, 20), (1, 20), "only as a pointer", "headroom"),  # right tiles, bad order
        (30, (2, np.nan), (2, 15), "sufficient, not decisive", "headroom"),
    ],
)
def test_constructed_cohorts(
    n: int, native: tuple[Any, Any], selector: tuple[Any, Any], belief: str, order: str
) -> None:
    names = ("native_msk", "native_dk", "selector_msk", "selector_dk")
    cohort = Cohort(n, **dict(zip(names, (*native, *selector), strict=True)))
    assert (cohort.belief, cohort.order) == (belief, order)


def test_better_than_native_but_not_than_chance_is_no_headroom() -> None:
    cohort = Cohort(native_msk=1, native_dk=np.nan, selector_msk=1, selector_dk=300)
    assert cohort.axis("dk", "selector", "native") == "better"
    assert cohort.axis("dk", "selector", "random") == "worse"
    assert cohort.order == "inconclusive"
