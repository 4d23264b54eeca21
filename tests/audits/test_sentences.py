"""Sentences of the answers, from numbers that are put in by hand."""

from types import SimpleNamespace
from typing import Any

import pytest

from foci.audits.answers import on_map, on_order
from foci.audits.records import (
    AxisComparison,
    MapAnswer,
    NullControl,
    OrderAnswer,
    OrderComparison,
)

SUFFICIENCY = (
    "Sufficiency, tiles that are enough (MSK): native against random, worse. Ahead on 7 slides, "
    "behind on 14, equal on 9 (20 patients: 4 ahead, 7 behind); medians 9 and 4, ratio 2.25; net "
    "share -0.25 (-0.50 to 0.00; p = 0.021)."
).replace("-", "\N{MINUS SIGN}")


def axis(result: str, d: float = -0.254, **more: Any) -> AxisComparison:
    given = {
        "axis": "sufficiency", "measure": "MSK", "d": d, "low": -0.5, "high": 0.004,
        "pvalue": 0.021, "n_slides": 30, "n_cases": 20, "wins": 7, "losses": 14, "case_wins": 4,
        "case_losses": 7, "first": 9.0, "second": 4.0, "ratio": 2.25, "n_ratio": 28,
        "result": result, **more,
    }  # fmt: skip
    return AxisComparison(**given)


def against(second: str, *axes: AxisComparison | None, first: str = "native") -> OrderComparison:
    sufficiency, necessity = axes
    return OrderComparison(first=first, second=second, sufficiency=sufficiency, necessity=necessity)


def control(**more: Any) -> NullControl:
    usual = {
        "ranking": "native", "d": 0.5, "n_maps": 39, "beaten": 38, "pvalue": 0.05, "best": 0.6,
        "n_slides": 30, "n_cases": 20, "sampled": False, "references": {},
    }  # fmt: skip
    return NullControl(**{**usual, **more})


def view(**more: Any) -> Any:
    slides = SimpleNamespace(full=[[0.1, 0.9]])
    usual = {
        "rankings": ("native", "random"), "map": "native", "n_decided": 30, "n_cases": 20,
        "has_intervals": True, "only_single_tiles": False, "tied": False, "exact": False,
        "settings": SimpleNamespace(n_boot=1),
        "measured": SimpleNamespace(slides=slides, tied={"native": 0.75}, null_map_wins=None),
    }  # fmt: skip
    return SimpleNamespace(**{**usual, **more})


def on_the_map(
    answer: str, comparison: OrderComparison | None, seen: Any = None, **more: Any
) -> list[str]:
    usual = {"ranking": "native", "null": control(), "only": [], "tied": 0.0, "sentences": []}
    made = MapAnswer(**{"answer": answer, "comparison": comparison, **usual, **more})
    return on_map(made, seen or view())


def on_the_order(answer: str, native: OrderComparison | None, **more: Any) -> list[str]:
    usual = {
        "candidate": "evidence", "against_random": None, "null": None, "evidence": None,
        "selector": None, "sentences": [],
    }  # fmt: skip
    belief = MapAnswer(
        answer="yes", sentences=[], ranking="native", null=None, only=[], tied=0.0,
        comparison=more.pop("believed", None),
    )  # fmt: skip
    seen = more.pop("view", view())
    made = OrderAnswer(**{"answer": answer, "against_native": native, **usual, **more})
    return on_order(made, belief, seen)


def test_the_map_against_chance_on_both_axes_and_beside_maps_that_know_nothing() -> None:
    hangs = axis(
        "better", 0.5, axis="necessity", measure="decisive K", low=None, high=None, second=None,
        ratio=None, pvalue=0.0004,
    )  # fmt: skip
    opening, first, second, null = on_the_map(
        "inconclusive", against("random", axis("worse"), hangs)
    )
    assert opening == (
        "The data do not settle whether the map beats random orders. "
        "(30 decided slides of 20 patients.)"
    )
    assert first == SUFFICIENCY
    assert second == (
        "Necessity, deciding tiles (decisive K): native against random, better. Ahead on 7 slides, "
        "behind on 14, equal on 9 (20 patients: 4 ahead, 7 behind); medians 9 and none; net share "
        "+0.50 (no interval; p < 0.001)."
    )
    assert null == (
        "Beside maps that know nothing (random directions in feature space), native does better "
        "than 38 of 39, by the probability lost without its first tiles (p = 0.050)."
    )


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"n_decided": 0}, "The model has decided no slide: there is no decision to recover."),
        ({"only_single_tiles": True}, "Every decided slide has a single tile"),
        ({"tied": True}, "The map's first tiles are tied on 75% of the slides: it gives no order."),
        ({"n_cases": 1}, "Only 1 patient has slides that the model is sure of: at least"),
        ({"has_intervals": False}, "1 bootstrap draw cannot give an interval: raise n_boot."),
        ({}, "No axis can tell these orders apart."),
        ({"rankings": ("native",)}, "random was not run: the map was not compared with chance."),
        ({"rankings": ()}, "native and random were not run: the map was not compared with chance."),
        ({"map": "heat"}, "heat was not run: the map was not compared with chance."),
    ],
)
def test_why_there_is_no_answer(more: dict[str, Any], says: str) -> None:
    (told,) = on_the_map("not assessable", None, view(**more))
    assert told.startswith(says)


def test_where_one_tile_is_enough_only_worse_counts() -> None:
    for result in ("better", "same", "unclear"):
        told = on_the_map("yes", against("random", axis(result, informative=False), None))[1]
        assert told == (
            "Sufficiency: not informative, random already needs one tile on half of the slides."
        )
    told = on_the_map("yes", against("random", axis("worse", informative=False), None))[1]
    assert told == SUFFICIENCY


@pytest.mark.parametrize(
    ("answer", "more", "says"),
    [
        (
            "no better than chance",
            {},
            "Its net share of slides over random orders is at most +0.14.",
        ),
        (
            "yes",
            {"only": ["tumour"]},
            "This holds for slides predicted tumour; in the other class it finds no deciding "
            "tiles.",
        ),
        ("yes", {"null": None}, "No content-free maps were run, so that no map can be believed."),
        (
            "yes",
            {"null": control(sampled=True, n_slides=5)},
            "Beside maps that know nothing (random directions in feature space) on a sample of 5 "
            "slides, native does better than 38 of 39, by the probability lost without its first "
            "tiles (p = 0.050).",
        ),
        (
            "yes",
            {"null": control(references={"size": 0.5, "colour": 0.4})},
            "Even sorting by size does as well.",
        ),
    ],
)
def test_what_else_is_said_of_a_map(answer: str, more: dict[str, Any], says: str) -> None:
    sure, idle = axis("same", high=0.141), axis("same", high=0.9, informative=False)
    assert says in on_the_map(answer, against("random", sure, idle), **more)
    assert says not in on_the_map("inconclusive", against("random", sure, idle))


def test_why_there_are_no_content_free_maps() -> None:
    seen = view()
    seen.measured.null_map_wins = object()  # run, and no slide is large enough
    told = on_the_map("inconclusive", against("random", axis("same"), None), seen, null=None)[-1]
    assert told == (
        "No slide has enough tiles to compare with content-free maps, so that no map can be "
        "believed."
    )


@pytest.mark.parametrize(
    ("axes", "says"),
    [
        ((("better", 0.3, 0.5), ("same", 0, 1)), "A trained order pays here: it beats evidence."),
        # six slides of 84, by one or two tiles each
        (
            (("better", 0.07, 0.5), None),
            "A trained order is not shown to add anything to evidence.",
        ),
        (
            (("better", 0.3, 0.97), None),
            "A trained order is not shown to add anything to evidence.",
        ),
        (
            (("unclear", 0.3, 0.5), None),
            "A trained order is not shown to add anything to evidence.",
        ),
        (
            (("better", 0.3, 0.97), ("worse", -0.2, 2)),
            "A trained order does not pay here: it is worse than evidence.",
        ),
        (
            (("better", 0.3, 0.5), ("worse", -0.2, 2)),
            "A trained order does not pay here: it is worse than evidence, on one axis, and better "
            "on the other.",
        ),
    ],
)
def test_whether_training_pays(axes: tuple[Any, ...], says: str) -> None:
    made = [None if one is None else axis(one[0], one[1], ratio=one[2]) for one in axes]
    selector = against("evidence", *made, first="selector")
    told = on_the_order("headroom", against("native", None, None), selector=selector)
    assert told == ["There is a better order than the map's.", says]


@pytest.mark.parametrize("answer", ["headroom", "mixed", "native is better", "inconclusive"])
def test_evidence_against_the_map_is_always_said(answer: str) -> None:
    selector = against("native", axis("same"), None, first="selector")
    evidence = against("native", axis("better"), None, first="evidence")
    told = on_the_order(answer, selector, evidence=evidence)
    assert [line.split(": ")[1].split(",")[0] for line in told[1:]] == [
        "selector against native", "evidence against native",
    ]  # fmt: skip


def test_two_answers_on_two_measures_say_so() -> None:
    area, count = (
        against("native", None, axis("same", axis="necessity", measure=measure))
        for measure in ("deletion area", "decisive K")
    )
    for believed, says in ((area, True), (count, False), (None, False)):
        told = on_the_order("inconclusive", count, believed=believed)[-1]
        assert says == told.startswith(
            "The answer on the map rests on confidence lost without the first tiles (deletion "
            "area), this one on deciding tiles (decisive K)."
        )


def test_without_a_candidate_there_is_nothing_to_say() -> None:
    assert on_the_order("not assessable", None) == [
        "No candidate was compared with the map's order."
    ]
    assert on_the_order("not assessable", None, view=view(n_decided=0)) == [
        "The model has decided no slide: there is no decision to recover."
    ]


def test_a_model_without_a_map_is_told_how_the_candidate_does_against_chance() -> None:
    chance = against("random", axis("better"), None, first="evidence")
    told = on_the_order("not assessable", None, against_random=chance)
    assert told[0] == "No candidate was compared with the map's order."
    assert told[1].startswith("Sufficiency, tiles that are enough (MSK): evidence against random, ")


def test_an_answer_names_the_map() -> None:
    for map_name, short in (("native", "native is better"), ("Grad-CAM", "Grad-CAM is better")):
        found = OrderAnswer(
            answer="native is better", sentences=[], candidate="evidence",
            against_native=against(map_name, axis("worse"), None, first="evidence"),
            against_random=None, null=None, evidence=None, selector=None,
        )  # fmt: skip
        assert found.short == short
