"""Three questions, answered for every verdict."""

from typing import Any

import pytest

from foci.audits import Manifest, StoredAudit, Summary
from foci.reports.text.answers import Answer, recommended
from foci.reports.text.answers import answers as answers_to


def answers(summary: Summary | dict[str, Any], manifest: Manifest) -> tuple[Answer, ...]:
    return answers_to(Summary.model_validate(summary), manifest)


def changed(
    audit: StoredAudit, verdict: str, **intervals: tuple[float, float, float]
) -> dict[str, Any]:
    summary = audit.summary.model_dump()
    summary["verdict"]["verdict"] = verdict
    for name, (low, estimate, high) in intervals.items():
        summary["verdict"][name] = {"estimate": estimate, "low": low, "high": high, "level": 0.95}
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
    audit: StoredAudit, difference: tuple[float, float, float], short: str
) -> None:
    summary = changed(audit, "headroom", random_over_native=difference)
    first = answers(summary, audit.manifest)[0]
    assert first.question == "Can I believe this map?"
    assert first.short == short
    native = summary["views"]["prediction"]["native"]["restricted"]["estimate"]
    assert f"takes {native:.1f} tiles" in first.sentences[0]
    reached = (summary["views"]["prediction"][name]["reach"] for name in ("native", "random"))
    own, chance = (f"{1 - found['estimate']:.0%}" for found in reached)
    assert first.sentences[2] == (
        f"{own} of the slides never get there in the model's own order and {chance} in a random "
        "one: they count as 256."
    )


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
    audit: StoredAudit, verdict: str, gain: tuple[float, float, float], ranking: str, short: str
) -> None:
    summary = changed(audit, verdict, gain_over_native=gain)
    assert recommended(Summary.model_validate(summary)) == ranking
    assert answers(summary, audit.manifest)[2].short == short


def test_how_many_counts_all_slides(audit: StoredAudit) -> None:
    answer = answers(audit.summary, audit.manifest)[1]
    found = audit.summary.model_dump()["views"]["prediction"]["selector"]
    median = found["median_k"]
    assert answer.short == f"{median} tile on half of the slides."
    assert f"{found['restricted']['estimate']:.1f}" in answer.sentences[1]
    assert (
        f"{1 - found['reach']['estimate']:.0%} that never get there count as 256"
        in (answer.sentences[1])
    )


def test_most_slides_may_never_reach(audit: StoredAudit) -> None:
    summary = audit.summary.model_dump()
    del summary["views"]["prediction"]["selector"]["median_k"]
    summary["views"]["prediction"]["selector"]["km"] = {"ks": [0, 3], "survival": [1.0, 0.8]}
    assert answers(summary, audit.manifest)[1].short == "No count up to 256 on most slides."


def test_most_slides_that_nothing_reaches_are_not_called_near_minimal(audit: StoredAudit) -> None:
    summary = changed(audit, "saturated")
    summary["verdict"] |= {"near_minimal": True, "n_slides": 8, "n_unreached": 7}
    for numbers in summary["views"]["prediction"].values():
        numbers["reach"]["estimate"] = 0.125
    which = answers(summary, audit.manifest)[2]
    assert which.short == "On most slides none is enough."
    assert which.sentences[0] == (
        "On 88% of the slides neither the model's own order nor the selector nor chance brings the "
        "model to 0.9 within 256 tiles: on these slides no measured count of tiles recovers its "
        "decision."
    )
    assert which.sentences[1].startswith("Look at Reach")
    assert not any("fewest possible" in sentence for sentence in which.sentences)
    summary["verdict"]["n_unreached"] = 4
    usual = answers(summary, audit.manifest)[2]
    assert usual.sentences[0] == "It is not shown to need more than the fewest possible."
    summary["verdict"]["first_count"] = 8
    coarse = answers(summary, audit.manifest)[2]
    assert "the fewest that counts from 8 on can show" in coarse.sentences[0]


def test_another_ranking_that_reaches_them_is_believed(audit: StoredAudit) -> None:
    summary = changed(audit, "saturated")
    summary["verdict"] |= {"n_slides": 8, "n_unreached": 7}
    summary["views"]["prediction"]["native"]["reach"]["estimate"] = 0.75
    assert answers(summary, audit.manifest)[2].short == "Those of the model's own order."


def test_one_tile_is_no_plural(audit: StoredAudit) -> None:
    summary = audit.summary.model_dump()
    for numbers in summary["views"]["prediction"].values():
        numbers["restricted"]["estimate"], numbers["reach"]["estimate"] = 1.0, 1.0
    first = answers(summary, audit.manifest)[0]
    assert "takes 1 tile on average" in first.sentences[0]
    assert not any("never get there" in sentence for sentence in first.sentences)


def test_where_nothing_is_ever_reached_no_order_is_recommended(audit: StoredAudit) -> None:
    summary = changed(audit, "saturated")
    for numbers in summary["views"]["prediction"].values():
        numbers["reach"]["estimate"] = 0.0
        numbers["km"] = {"ks": [0], "survival": [1.0]}
        del numbers["median_k"]
    _, second, third = answers(summary, audit.manifest)
    assert second.short == "No count up to 256 on most slides."
    assert third.short == "None is enough."
    assert "No order brings the model to 0.9 on any slide within 256 tiles." in third.sentences[0]


def test_without_a_verdict_the_fewest_tiles_win(unlabelled: StoredAudit) -> None:
    first, second, third = answers(unlabelled.summary, unlabelled.manifest)
    assert first.short == "Compare the two counts."
    assert "Under the native ranking" in second.sentences[0]
    assert third.short == "Those of the native ranking."
    summary = unlabelled.summary.model_dump()
    for numbers in summary["views"]["prediction"].values():
        numbers["reach"]["estimate"] = 0.125
    third = answers(summary, unlabelled.manifest)[2]
    assert third.short == "No order is enough on most slides."
    assert "to 0.9 within 256 tiles on 12% of the slides" in third.sentences[0]


def test_without_random_orders_nothing_is_claimed(audit: StoredAudit) -> None:
    summary = audit.summary.model_dump()
    summary["rankings"].remove("random")
    summary["verdict"] = None
    first = answers(summary, audit.manifest)[0]
    assert first.short == "Not measured."
    assert "'random' was not run" in first.sentences[0]


def test_a_proxy_is_called_a_stand_in(audit: StoredAudit) -> None:
    proxy = audit.manifest.backbone.model_copy(update={"score": "proxy"})
    manifest = audit.manifest.model_copy(update={"backbone": proxy})
    assert "stand-in" in answers(audit.summary, manifest)[0].sentences[-1]
