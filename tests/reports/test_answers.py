"""Three questions, answered for every verdict."""

import copy
from typing import Any

import pytest

from foci.audits import Audit
from foci.reports.answers import answers, median_k, recommended


def changed(audit: Audit, verdict: str, **intervals: tuple[float, float, float]) -> dict[str, Any]:
    summary = copy.deepcopy(audit.summary)
    summary["verdict"]["verdict"] = verdict
    for name, (low, estimate, high) in intervals.items():
        summary["verdict"][name] = {"estimate": estimate, "low": low, "high": high}
    return summary


GAIN, LOSS, TIE = (1.0, 2.0, 3.0), (-3.0, -2.0, -1.0), (-1.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("difference", "short"),
    [
        (LOSS, "Yes, more than chance."),
        (GAIN, "No: chance does better."),
        (TIE, "Not shown to beat chance."),
    ],
)
def test_the_map_is_believed_as_far_as_it_beats_chance(
    audit: Audit, difference: tuple[float, float, float], short: str
) -> None:
    summary = changed(audit, "headroom", random_over_native=difference)
    first = answers(summary, audit.manifest)[0]
    assert first.question == "Can I believe this map?"
    assert first.short == short
    native = summary["views"]["prediction"]["native"]["restricted"]["estimate"]
    assert f"takes {native:.1f} tiles" in first.sentences[0]


@pytest.mark.parametrize(
    ("verdict", "gain", "ranking", "short"),
    [
        ("headroom", GAIN, "selector", "Those of the selector."),
        ("conflict", LOSS, "native", "Those of the model's own order."),
        ("saturated", TIE, "native", "Those of the model's own order."),
        ("saturated", GAIN, "native", "Those of the model's own order."),
        ("uninformative native ranking", GAIN, "selector", "No order is shown to beat chance."),
        ("uninformative native ranking", TIE, "native", "No order is shown to beat chance."),
    ],
)
def test_which_tiles_follows_the_verdict(
    audit: Audit, verdict: str, gain: tuple[float, float, float], ranking: str, short: str
) -> None:
    summary = changed(audit, verdict, gain_over_native=gain)
    assert recommended(summary) == ranking
    assert answers(summary, audit.manifest)[2].short == short


def test_how_many_counts_all_slides(audit: Audit) -> None:
    answer = answers(audit.summary, audit.manifest)[1]
    found = audit.summary["views"]["prediction"]["selector"]
    median = median_k(found["km"])
    assert answer.short == f"{median} tile on half of the slides."
    assert f"{found['restricted']['estimate']:.1f}" in answer.sentences[1]
    assert (
        f"{1 - found['reach']['estimate']:.0%} that never get there count as 256"
        in (answer.sentences[1])
    )


def test_most_slides_may_never_reach(audit: Audit) -> None:
    summary = copy.deepcopy(audit.summary)
    summary["views"]["prediction"]["selector"]["km"] = {"ks": [0, 3], "survival": [1.0, 0.8]}
    assert answers(summary, audit.manifest)[1].short == "More than 256 on most slides."


def test_where_nothing_is_ever_reached_no_order_is_recommended(audit: Audit) -> None:
    summary = changed(audit, "saturated")
    for numbers in summary["views"]["prediction"].values():
        numbers["reach"]["estimate"] = 0.0
        numbers["km"] = {"ks": [0], "survival": [1.0]}
    _, second, third = answers(summary, audit.manifest)
    assert second.short == "More than 256 on most slides."
    assert third.short == "None is enough."
    assert "No order brings the model to 0.9 on any slide within 256 tiles." in third.sentences[0]


def test_without_a_verdict_the_fewest_tiles_win(unlabelled: Audit) -> None:
    first, second, third = answers(unlabelled.summary, unlabelled.manifest)
    assert first.short == "Compare the two counts."
    assert "Under the native ranking" in second.sentences[0]
    assert third.short == "Those of the native ranking."


def test_without_random_orders_nothing_is_claimed(audit: Audit) -> None:
    summary = copy.deepcopy(audit.summary)
    summary["rankings"].remove("random")
    summary["verdict"] = None
    first = answers(summary, audit.manifest)[0]
    assert first.short == "Not measured."
    assert "'random' was not run" in first.sentences[0]


def test_a_proxy_is_called_a_stand_in(audit: Audit) -> None:
    manifest = {**audit.manifest, "backbone": {"score": "proxy"}}
    assert "stand-in" in answers(audit.summary, manifest)[0].sentences[-1]
