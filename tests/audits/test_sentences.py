"""Sentences of the answers, from numbers that are put in by hand."""

from types import SimpleNamespace
from typing import Any

import pytest

from foci.audits.answers import on_map, on_order, result_of
from foci.audits.records import AxisComparison, OrderComparison


def axis(result: str, d: float = -0.254, **more: Any) -> AxisComparison:
    given = {
        "axis": "sufficiency", "measure": "MSK", "d": d, "low": -0.5, "high": 0.004,
        "n_slides": 30, "n_cases": 20, "n_differ": 11, "result": result, **more,
    }  # fmt: skip
    return AxisComparison(**given)


def against(second: str, *axes: AxisComparison | None, first: str = "native") -> OrderComparison:
    sufficiency, necessity = axes
    return OrderComparison(
        first=first,
        second=second,
        sufficiency=sufficiency,
        necessity=necessity,
        ratio=1.0,
        n_ratio=3,
    )


def view(**more: Any) -> Any:
    usual = {
        "rankings": ("native", "random"), "n_decided": 30, "n_cases": 20,
        "has_intervals": True, "only_single_tiles": False, "settings": SimpleNamespace(n_boot=1),
    }  # fmt: skip
    return SimpleNamespace(**{**usual, **more})


def test_the_map_against_chance_on_both_axes() -> None:
    hangs = axis("better", 0.5, axis="necessity", measure="decisive K", low=None, high=None)
    opening, first, second = on_map("inconclusive", against("random", axis("worse"), hangs), view())
    assert opening == (
        "The data do not settle whether the map beats random orders. "
        "(30 decided slides of 20 patients.)"
    )
    assert first == (
        "Sufficiency (MSK): native is worse than random (net share of slides -0.25, -0.50 to +0.00;"
        " 11 of 20 patients differ)."
    ).replace("-", "\N{MINUS SIGN}")
    assert second == (
        "Necessity (decisive K): native is better than random (net share of slides +0.50, "
        "no interval; 11 of 20 patients differ)."
    )


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"n_decided": 0}, "The model has decided no slide: there is no decision to recover."),
        ({"only_single_tiles": True}, "Every decided slide has a single tile"),
        ({"n_cases": 1}, "Only 1 patient with decided slides: at least"),
        ({"has_intervals": False}, "1 bootstrap draw cannot give an interval: raise n_boot."),
        ({}, "No axis can tell these orders apart."),
        ({"rankings": ("native",)}, "random was not run: the map was not compared with chance."),
        ({"rankings": ()}, "native and random were not run: the map was not compared with chance."),
    ],
)
def test_why_there_is_no_answer(more: dict[str, Any], says: str) -> None:
    (told,) = on_map("not assessable", None, view(**more))
    assert told.startswith(says)


def test_already_minimal_is_said_and_does_not_count() -> None:
    full = axis("already minimal")
    _, told = on_map("yes", against("random", full, None), view())
    assert told == (
        "Sufficiency: random needs one tile on half of the slides, so that native has no room to "
        "need fewer."
    )
    assert result_of(full) is result_of(None) is None
    assert result_of(axis("worse")) == "worse"


@pytest.mark.parametrize(
    ("results", "says"),
    [
        (("better", "same"), "Training pays here: the selector beats evidence."),
        (("better", "worse"), "Training a selector is not shown to add anything to evidence."),
        (("unclear", None), "Training a selector is not shown to add anything to evidence."),
        (("worse", "same"), "Training does not pay here: the selector is worse than evidence."),
    ],
)
def test_whether_training_pays(results: tuple[str | None, ...], says: str) -> None:
    axes = [None if one is None else axis(one) for one in results]
    selector = against("evidence", *axes, first="selector")
    told = on_order("headroom", against("native", None, None), None, selector, view())
    assert told == ["There is a better order than the map's.", says]


def test_without_a_candidate_there_is_nothing_to_say() -> None:
    assert on_order("not assessable", None, None, None, view()) == [
        "No candidate was compared with the map's order."
    ]


def test_a_model_without_a_map_is_told_how_the_candidate_does_against_chance() -> None:
    chance = against("random", axis("better"), None, first="evidence")
    told = on_order("not assessable", None, chance, None, view())
    assert told[0] == "No candidate was compared with the map's order."
    assert told[1].startswith("Sufficiency (MSK): evidence is better than random (net share")
