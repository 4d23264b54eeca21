"""The three answers on a page say what the summary says."""

from typing import Any, get_args

import pytest

from foci.audits import StoredAudit, Summary
from foci.audits.summary import Answers, OrderComparison
from foci.metrics.answers import Belief, BetterOrder, conclusive
from foci.reports.cards import answer_cards
from foci.reports.text import MAP, MINUS, ORDER, TILES, ComparisonLine, answers, evidence, tone_of


def changed(audit: StoredAudit, **more: Any) -> Answers:
    """The answers with other content, as an audit would store it."""
    return Answers.model_validate({**audit.answers.model_dump(), **more})


def test_every_question_has_its_answer_and_sentences(audit: StoredAudit) -> None:
    shown = answers(audit.summary, audit.manifest)
    assert [one.question for one in shown] == [MAP, TILES, ORDER]
    own = audit.answers
    for one, stored in zip(shown, (own.map, own.tiles, own.order), strict=True):
        assert one.short == stored.answer
        assert list(one.sentences) == stored.sentences
        assert one.sentences, "no answer without a reason"
        assert one.tone == tone_of(stored.answer)


@pytest.mark.parametrize("answer", [*get_args(Belief), *get_args(BetterOrder)])
def test_what_decides_nothing_has_no_colour(answer: Any) -> None:
    assert (tone_of(answer) == "none") == (not conclusive(answer))


@pytest.mark.parametrize(
    ("tone", "of"),
    [
        ("good", {"yes", "headroom", "native suffices"}),
        ("part", {"only as a pointer", "sufficient, not decisive", "mixed",
                  "no better order found"}),
        ("bad", {"no better than chance", "native is better"}),
        ("none", {"inconclusive", "not assessable"}),
    ],
)  # fmt: skip
def test_tones(tone: str, of: set[str]) -> None:
    every = {*get_args(Belief), *get_args(BetterOrder)}
    assert {answer for answer in every if tone_of(answer) == tone} == of
    assert tone_of("11 tiles") == tone_of(None) == "none"


COMPARISON: dict[str, Any] = {
    "first": "evidence",
    "second": "native",
    "sufficiency": {
        "axis": "sufficiency", "measure": "MSK", "d": 0.004, "low": -0.02, "high": 0.03,
        "n_slides": 40, "n_cases": 30, "n_differ": 2, "result": "same",
    },
    "necessity": {
        "axis": "necessity", "measure": "decisive K", "d": -0.575, "low": -0.7111, "high": -0.43,
        "n_slides": 38, "n_cases": 29, "n_differ": 21, "result": "worse",
    },
    "ratio": 1.1,
    "n_ratio": 30,
}  # fmt: skip


def test_the_table_holds_every_comparison_that_was_made(audit: StoredAudit) -> None:
    own = audit.answers
    order = {**own.order.model_dump(), "against_native": COMPARISON, "selector": COMPARISON}
    full = changed(audit, order=order)
    compared: list[OrderComparison | None] = [
        full.map.comparison,
        full.order.against_native,
        full.order.against_random,
        full.order.selector,
    ]
    axes = [
        (one.first, one.second, axis)
        for one in compared
        if one is not None
        for axis in (one.sufficiency, one.necessity)
        if axis is not None
    ]
    lines = evidence(full)
    assert len(axes) > 5
    assert [(line.rankings, line.axis, line.interval) for line in lines] == [
        (f"{first} against {second}", f"{axis.axis} ({axis.measure})", axis)
        for first, second, axis in axes
    ]
    assert all(
        line.text.replace(MINUS, "-")
        == f"{_signed(axis.d)} ({_signed(axis.low)} to {_signed(axis.high)})"
        for line, (_, _, axis) in zip(lines, axes, strict=True)
    )


def _signed(value: float) -> str:
    return f"{round(value, 2):+.2f}" if round(value, 2) else "0.00"


def test_one_line_per_axis_that_was_compared(audit: StoredAudit) -> None:
    without = {**COMPARISON, "necessity": None}
    nothing = {"against_native": without, "against_random": None, "selector": None}
    order = {**audit.answers.order.model_dump(), **nothing}
    map_ = {**audit.answers.map.model_dump(), "comparison": None}
    (line,) = evidence(changed(audit, order=order, map=map_))
    assert line == ComparisonLine(
        "evidence against native",
        "sufficiency (MSK)",
        "tiles needed",
        line.interval,
        f"0.00 ({MINUS}0.02 to +0.03)",
    )


def test_a_proxy_is_called_a_stand_in(audit: StoredAudit) -> None:
    own = answers(audit.summary, audit.manifest)[0]
    assert not any("stand-in" in sentence for sentence in own.sentences)
    proxy = audit.manifest.backbone.model_copy(update={"score": "proxy"})
    manifest = audit.manifest.model_copy(update={"backbone": proxy})
    assert "stand-in" in answers(audit.summary, manifest)[0].sentences[-1]


def test_an_audit_that_decides_nothing_still_answers(multiclass: StoredAudit) -> None:
    assert multiclass.answers.n_decided == 0
    shown = answers(Summary.model_validate(multiclass.summary.model_dump()), multiclass.manifest)
    assert [one.short for one in shown] == ["not assessable"] * 3
    assert "decided no slide" in shown[0].sentences[0]
    count = answer_cards(multiclass.summary, multiclass.manifest)[1]
    assert count.sample == "no patient has a decided slide"
    assert count.badge == "0 of 14 slides decided"
