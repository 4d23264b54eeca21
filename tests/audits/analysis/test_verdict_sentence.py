"""The sentence of a verdict, word by word."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foci.audits.analysis.verdict_sentence import verdict_sentence
from foci.metrics import judge
from tests.metrics.strategies import quick
from tests.metrics.test_verdict import CASES, N, counts, verdict


@pytest.mark.parametrize(
    ("native", "selector", "random", "says"),
    [
        (9, 2, 6, "fewer than the native ranking and"),
        (4, 9, 12, "more than the native ranking: keep the native ranking"),
        (38, 17, 5, "not shown to beat a random order"),
        (20, 20, 5, "A random order needs 15"),
        (20, 20, 60, "shown to be neither better nor worse: it gains none of that"),
        (1.0, 1.0, 3, "there is nothing to gain."),
        (1.0, 4, 3, "The selector is worse: keep the native ranking."),
    ],
)
def test_known_cohorts(native: float, selector: float, random: float, says: str) -> None:
    sentence = verdict_sentence(verdict(native, selector, random))
    assert says in sentence
    assert "\n" not in sentence


def test_a_greedy_search_leaves_nothing_to_gain() -> None:
    native = counts(5, 1)
    bounded = judge(native, native, [native], CASES, greedy=np.maximum(native - 0.25, 1))
    assert "there is nothing to gain" in verdict_sentence(bounded)


def test_a_cohort_that_nothing_reaches_is_not_called_easy() -> None:
    result = judge([None] * 8, [None] * 8, [[np.nan] * 8], cases=range(8), k_max=64)
    says = "No ranking compared here makes the model sure of any slide within 64 tiles"
    assert verdict_sentence(result).startswith(says)
    assert verdict_sentence(result).endswith("look at Reach, lower kappa or raise K_max.")


def test_most_slides_unreached_is_said_first_and_nothing_is_called_minimal() -> None:
    native = np.where(np.arange(8) < 7, np.nan, 1.0)
    result = judge(native, native, [native], cases=range(8))
    assert verdict_sentence(result) == (
        "No ranking compared here makes the model sure of 7 of 8 slides (88%) within 256 "
        "tiles: on these slides no measured count of tiles recovers its decision; look at Reach, "
        "lower kappa or raise K_max. The other slides are too few to say more."
    )
    worse = judge(np.ones(8), np.full(8, 3.0), [np.ones(8)], cases=range(8))
    lost = judge(native, np.full(8, np.nan), [native], cases=[0] * 8)
    assert "keep the native ranking" in verdict_sentence(worse)
    assert verdict_sentence(lost).endswith("more. The selector is worse: keep the native ranking.")


@pytest.mark.parametrize(("unreached", "first"), [(4, False), (5, True)])
def test_half_of_the_slides_is_not_most(unreached: int, first: bool) -> None:
    native = np.where(np.arange(8) < unreached, np.nan, 1.0)
    sentence = verdict_sentence(judge(native, native, [native], cases=range(8)))
    says = "No ranking compared here makes the model sure of 5 of 8 slides"
    assert sentence.startswith(says) == first
    assert ("nothing to gain" in sentence) == (not first)
    assert sentence.endswith("reaches 4 of 8 slides (50%), counted as 256.") == (not first)


def test_room_below_the_first_revealed_count_is_not_claimed() -> None:
    native = np.full(N, 8.0)
    native[0] = 5  # a slide of 5 tiles ends at all of them
    result = judge(native, native, [native], CASES, first_count=8)
    assert verdict_sentence(result) == (
        "The native ranking is 0.0 tiles (0.0 to 0.0) above the fewest that counts from 8 on can "
        "show, not shown to exceed 0.5: there is nothing to gain that these counts can show."
    )


def test_one_lucky_slide_is_not_room() -> None:
    native, selector = np.ones(N), np.ones(N)
    native[0] = np.nan  # 255 tiles on one slide: 4.25 on average, all from one patient
    assert "too few patients to tell" in verdict_sentence(judge(native, selector, [native], CASES))


@quick
@given(
    st.lists(
        st.tuples(*[st.one_of(st.none(), st.integers(1, 300))] * 3, st.integers(0, 5)),
        min_size=1,
        max_size=12,
    )
)
def test_every_verdict_is_a_sentence(
    rows: list[tuple[int | None, int | None, int | None, int]],
) -> None:
    native, selector, order, cases = (list(column) for column in zip(*rows, strict=True))
    result = judge(native, selector, np.array([order], dtype=float), cases, n_boot=50)
    sentence = verdict_sentence(result)
    assert sentence.endswith(".")
    assert "\n" not in sentence
