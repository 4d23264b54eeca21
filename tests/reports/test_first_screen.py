"""The first screen in words: the word of every answer, counts in closed form, what comes first."""

import re
from typing import Any, get_args

import pytest

from foci.audits import StoredAudit, Summary
from foci.audits.audit import recompute
from foci.metrics.answers import Belief
from foci.reports.first_screen import WORDS, first_screen, methods_text
from foci.reports.payload import payload, slide_gallery
from foci.reports.text import fate_in_words
from tests.reports.conftest import NATIVE


def with_answer(audit: StoredAudit, map_: str) -> Summary:
    """The summary as if the rules had answered otherwise."""
    stored: dict[str, Any] = audit.summary.model_dump()
    stored["answers"]["map"]["answer"], stored["answers"]["order"]["answer"] = map_, "headroom"
    return Summary.model_validate(stored)


def test_every_answer_has_its_word(carried: StoredAudit) -> None:
    assert set(WORDS) == set(get_args(Belief))
    words = {
        answer: first_screen(with_answer(carried, answer), carried.manifest).word
        for answer in get_args(Belief)
    }
    assert {answer for answer, word in words.items() if word == "Yes"} == {"yes"}
    assert {answer for answer, word in words.items() if word == "Partly"} == {
        "only as a pointer", "sufficient, not decisive",
    }  # fmt: skip
    assert {answer for answer, word in words.items() if word == "Can't tell"} == {
        "inconclusive", "not assessable",
    }  # fmt: skip


def test_counts_are_those_of_the_slides(carried: StoredAudit) -> None:
    """Six of the ten sure slides have MSK and flip within 32 tiles, under the best order all.

    The axis that tells them apart is the keep test: the best order needs one tile of every slide,
    the map so few only of two.
    """
    found = first_screen(with_answer(carried, "yes"), carried.manifest)
    assert found.sentences == (
        "The first 32 tiles of this map carry the decision on 6 of 10 slides; "
        "as many random tiles on none.",
        "A better order exists: it carries 10 of 10 and needs 5 tiles on a typical slide of the "
        "10; slide by slide better on 8, worse on none.",
    )
    assert found.title == "12 test slides, 10 patients"
    assert found.definition == (
        "these tiles alone give the decision, and without them it changes. Measured on the 10 of "
        "12 slides where the model is at least 90% sure. Says what this model uses, not what is "
        "diagnostic."
    )
    assert found.notices == ()


@pytest.mark.parametrize("answer", get_args(Belief))
def test_a_word_that_is_not_yes_has_its_reason_first(carried: StoredAudit, answer: Belief) -> None:
    sentences = first_screen(with_answer(carried, answer), carried.manifest).sentences
    assert len(sentences) == (2 if answer == "yes" else 3)
    if answer != "yes":
        assert not sentences[0].startswith("The first 32")


def test_a_stand_in_comes_first(carried: StoredAudit) -> None:
    proxy = carried.manifest.backbone.model_copy(update={"score": "proxy"})
    manifest = carried.manifest.model_copy(update={"backbone": proxy})
    (notice,) = first_screen(carried.summary, manifest).notices
    assert notice == (
        "Not the model's own map.",
        "abmil gives no tile attention; this is a stand-in.",
    )


def test_few_sure_slides_are_said_with_the_relative_answer(audit: StoredAudit) -> None:
    summary = recompute(audit, kappa=0.94)
    told = summary.answers
    assert 0 < told.n_decided < 0.7 * told.n_slides
    found = first_screen(summary, audit.manifest)
    (notice,) = found.notices
    assert notice[0] == f"The model is at least 94% sure of only {told.n_decided} of 20 slides."
    assert summary.carried is not None
    assert summary.carried.relative is None
    also = "also " * (told.relative[0].map == told.map.answer)
    word = WORDS[told.relative[0].map]
    assert notice[1] == f"Over all slides, sure or not, the answer is {also}{word}."
    assert found.word == WORDS[told.map.answer]
    assert "on the slides counted above" in found.definition


@pytest.mark.parametrize(
    ("sure", "every", "said"),
    [
        ([], [], "the answer is also Yes."),
        (["B"], ["B"], "the answer is also Yes, only on B."),
        (["B"], [], "the answer is Yes, not only on B."),
        ([], ["A", "B"], "the answer is Yes, only on A, B."),
    ],
)
def test_a_limit_to_some_classes_is_said_of_all_slides_too(
    audit: StoredAudit, sure: list[str], every: list[str], said: str
) -> None:
    summary = recompute(audit, kappa=0.94)
    told = summary.answers
    own = told.map.model_copy(update={"answer": "yes", "only": sure})
    limited = {"map": "yes", "only": every}
    relative = [one.model_copy(update=limited) for one in told.relative]
    told = told.model_copy(update={"map": own, "relative": relative})
    found = first_screen(summary.model_copy(update={"answers": told}), audit.manifest)
    assert found.notices[0][1] == f"Over all slides, sure or not, {said}"


def test_where_no_slide_is_sure_the_word_is_the_relative_one(multiclass: StoredAudit) -> None:
    summary = multiclass.summary
    assert summary.answers.map.answer == "not assessable"
    assert summary.carried is not None
    assert summary.carried.relative == 0.95
    found = first_screen(summary, multiclass.manifest)
    assert found.word == WORDS[summary.answers.relative[0].map]
    assert found.notices[-1] == (
        "The model is at least 90% sure of no slide.",
        "So this answer is over all slides, sure or not.",
    )
    assert "make the model 95% as sure as the whole slide does" in found.definition


def test_a_yes_without_deciding_tiles_says_what_it_rests_on(audit: StoredAudit) -> None:
    assert audit.summary.carried is not None
    assert audit.summary.carried.lines["native"].share[-1] == 0
    said = "No few tiles carry a decision here: judged by what the model loses without them."
    assert said in first_screen(with_answer(audit, "yes"), audit.manifest).sentences
    assert (
        said
        not in first_screen(with_answer(audit, "no better than chance"), audit.manifest).sentences
    )


def test_without_a_chart_the_reason_is_said(carried: StoredAudit) -> None:
    bare = carried.summary.model_copy(update={"carried": None})
    found = first_screen(bare, carried.manifest)
    assert found.sentences[-1] == carried.answers.map.sentences[0]


def test_the_methods_text_has_the_numbers(carried: StoredAudit) -> None:
    text = methods_text(carried.summary, carried.manifest)
    assert "on 12 slides of 10 patients" in text
    assert "On the 10 slides of 8 patients where the model was that sure" in text
    assert "the model's map 60%, 95% interval" in text
    assert "one-tile test 100%" in text
    assert "random tiles 0%" in text
    assert "at least 0.9" in text
    assert "weights ffffffffffff" in text
    assert "Half of these slides take 5 tiles or fewer (one-tile test)." in text
    assert "Are Compact Rationales Free?" in text
    assert "p = 0.000" not in text
    assert not re.search(r"None|nan|\bnative\b", text.split("Answers by")[0])


def test_the_methods_text_of_a_risk_speaks_of_its_cut(carried: StoredAudit) -> None:
    text = methods_text(carried.summary.model_copy(update={"output": "cox"}), carried.manifest)
    assert "if they alone keep the output clearly on its side of the cut" in text
    assert "and it crosses the cut when they are removed" in text
    assert "where the output was clearly on one side of the cut" in text
    assert "probability" not in text


def test_fates_are_read_off_the_curves(carried: StoredAudit) -> None:
    """Carried at the larger of MSK and flip; survives without a flip; else not enough."""
    gallery = slide_gallery(carried.measured(), carried.summary)
    for row, (msk, flip) in enumerate(NATIVE[:10]):
        both = None if msk is None or flip is None else max(msk, flip)
        assert gallery.counts["native"][row] == both
        wanted = "survives" if flip is None else "not enough" if msk is None else "carried"
        assert gallery.fate[row] == wanted
        assert gallery.counts["evidence"][row] == 1 + row
    assert gallery.fate[10:] == ["not sure"] * 2
    assert gallery.removed == [256] * 12
    assert gallery.order == [6, 8, 7, 5, 4, 3, 2, 9, 1, 0, 10, 11]
    assert gallery.first == [0, 2, 5, 6], "evenly from best to worst, sure slides only"


def test_fates_in_words(carried: StoredAudit) -> None:
    data = payload(carried, carried.summary, carried.manifest.settings)
    assert [fate_in_words(data, row) for row in (0, 6, 7, 11)] == [
        "2 tiles of 300 carry the decision",
        "decision survives without the map's first 256 tiles",
        "no first tiles both give the decision and change it when removed",
        "model is not sure of this slide",
    ]
