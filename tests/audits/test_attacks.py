"""Somebody wants to fool an audit, or is fooled by it: what it answers all the same."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as tries
from hypothesis import strategies as st

from foci.audits.records import Answers
from foci.metrics.answers import BELIEVED
from tests.audits.test_answers import CHANCE, HEADROOM, SAME, N, answers_of
from tests.makers.attention import D_IN, AttentionCohort, Scores
from tests.makers.curves import NULLS, Pair, Settings

COHORT = AttentionCohort.drawn(40, 120)
ONE_TILE = AttentionCohort.drawn(60, 120, background=1.0)
"""One tile is enough for a random order on half of the slides: sufficiency is not informative."""


def judged(scores: Scores, cohort: AttentionCohort = COHORT, **changes: Any) -> Answers:
    maps = {"native": scores, "evidence": cohort.evidence}
    return cohort.summary(maps, Settings(**changes)).answers


def better_than_chance(found: Answers) -> bool:
    return any(axis.result == "better" for axis in found.map.comparison.axes)


def reversed_(scores: Scores) -> Scores:
    return [-own for own in scores]


# Maps that know nothing are not believed, those that know something are


@pytest.mark.parametrize("name", ["native", "evidence", "noisy evidence"])
def test_maps_that_know_something_are_believed(name: str) -> None:
    rng = np.random.default_rng(0)
    ranks = [np.argsort(np.argsort(own)) / len(own) for own in COHORT.evidence]
    noisy = [own * np.sqrt(12) + 0.5 * rng.normal(size=len(own)) for own in ranks]
    maps = {"native": COHORT.native, "evidence": COHORT.evidence, "noisy evidence": noisy}
    found = judged(maps[name])
    assert found.map.answer == "yes"
    assert any("of 139, by the probability" in line for line in found.map.sentences)


def untrained(seed: int) -> Scores:
    """Attention of a network that was never trained."""
    rng = np.random.default_rng(seed)
    hidden, out = rng.normal(size=(D_IN, 8)) / np.sqrt(D_IN), rng.normal(size=8)
    return [np.tanh(x @ hidden) @ out for x in COHORT.features]


@pytest.mark.parametrize(
    "draw",
    [lambda seed: COHORT.along(COHORT.directions(16, seed=1)[seed]), untrained],
    ids=["direction", "net"],
)
def test_maps_that_know_nothing_are_not_believed_though_some_beat_random_orders(
    draw: Callable[[int], Scores],
) -> None:
    """At a level of 5 % one of 16 may pass; calibration proper is a benchmark."""
    found = [judged(draw(seed)) for seed in range(16)]
    believed = sum(one.map.answer in BELIEVED for one in found)
    assert believed <= 1
    assert sum(map(better_than_chance, found)) >= believed + 4  # once, each of them was believed
    named = [one for one in found if one.map.answer == "no better than a content-free map"]
    assert named
    for one in named:
        assert one.map.null.pvalue > 0.05
        assert "any order that takes one kind of tissue first does" in one.map.sentences[0]


@pytest.mark.parametrize(
    ("as_good", "answer"),
    [(0, "yes"), (6, "yes"), (7, "no better than a content-free map"),
     (139, "no better than a content-free map")],
)  # fmt: skip
def test_at_most_six_of_139_content_free_maps_may_do_as_well(as_good: int, answer: str) -> None:
    flips = [(8,) * as_good + NULLS[as_good:]] * N
    found = answers_of(SAME, nulls=flips)
    assert found.map.answer == answer
    assert found.map.null.beaten == 139 - as_good
    better = answers_of(HEADROOM, nulls=[(6,) * as_good + NULLS[as_good:]] * N)
    assert (better.order.answer == "headroom") == (as_good < 7)  # the candidate must pass, too


def test_references_have_no_vote_but_are_named() -> None:
    found = answers_of(SAME, nulls=[(*NULLS[:139], 8, None)] * N)
    assert found.map.answer == "yes"
    assert "Even sorting by the length of the feature does as well." in found.map.sentences


def test_without_content_free_maps_nothing_is_believed() -> None:
    for scores in (COHORT.native, COHORT.evidence):
        found = judged(scores, null_maps=0)
        assert found.map.answer == "inconclusive"
        assert found.order.answer != "headroom"
        assert "No content-free maps were run, so that no map can be believed." in (
            found.map.sentences
        )
    assert answers_of(HEADROOM, nulls=[]).order.answer == "inconclusive"
    worse = judged(reversed_(COHORT.native), null_maps=0)
    assert worse.map.answer == "worse than chance"  # which needs none


# Worse is an answer


def begins_with_the_worst(cohort: AttentionCohort, rest: Scores, n: int = 5) -> Scores:
    """The tiles that argue most against the decision, then the others by a map."""
    pairs = zip(cohort.evidence, rest, strict=True)
    return [np.where(e <= np.sort(e)[n - 1], own.max() + 1 - e, own) for e, own in pairs]


@pytest.mark.parametrize("cohort", [COHORT, ONE_TILE], ids=["usual", "one tile is enough"])
@pytest.mark.parametrize("attack", ["inverted", "worst, then chance", "worst, then evidence"])
def test_worse_is_not_hidden(attack: str, cohort: AttentionCohort) -> None:
    """Neither by a median of one tile under random orders, nor by the other axis."""
    rest = cohort.evidence if attack.endswith("evidence") else cohort.chance(0)
    inverted = attack == "inverted"
    scores = reversed_(cohort.evidence) if inverted else begins_with_the_worst(cohort, rest)
    found = judged(scores, cohort).map
    sufficiency, necessity = found.comparison.axes
    assert sufficiency.informative == (cohort is COHORT)
    assert sufficiency.result == "worse"
    assert any("random, worse. Ahead on" in line for line in found.sentences)
    if attack == "worst, then evidence":  # the decision hangs on the tiles after the worst
        assert necessity.d > -sufficiency.d
        usual = "only as a pointer" if cohort is COHORT else "no better than a content-free map"
        assert found.answer == usual
    else:
        assert found.answer == "worse than chance"


@pytest.mark.parametrize(
    ("slower", "needed", "answer"),
    [
        # a proxy that loses on tiles needed was told yes: one tile is enough at random
        (8, 0, "worse than chance"),
        (8, 7, "worse than chance"),
        (8, 20, "only as a pointer"),
        (2, 20, "yes"),  # too few to be worse beyond doubt
    ],
)
def test_an_axis_of_one_tile_counts_where_the_map_is_worse(
    slower: int, needed: int, answer: str
) -> None:
    quick: list[Pair] = [(3 if i < slower else 1, 9 if i >= N - needed else None) for i in range(N)]
    evidence: list[Pair] = [(1, 5)] * N
    chance: list[Pair] = [(1, None)] * N
    found = answers_of({"native": quick, "evidence": evidence, "random": chance})
    assert found.map.answer == answer


# A map without an order


def constant(cohort: AttentionCohort) -> Scores:
    return [np.ones(len(x)) for x in cohort.features]


def flat_top(cohort: AttentionCohort, share: float) -> Scores:
    """The native map, with one score for its first 32 tiles on a share of the slides."""
    n = round(share * len(cohort.names))
    return [
        np.minimum(own, np.sort(own)[-32]) if number < n else own
        for number, own in enumerate(cohort.native)
    ]


@pytest.mark.parametrize(
    ("scores", "share"),
    [(constant(COHORT), "100%"), (constant(ONE_TILE), "100%"), (flat_top(COHORT, 0.6), "60%"),
     (flat_top(COHORT, 0.4), None)],
    ids=["constant", "constant, one tile", "tied on most", "tied on some"],
)  # fmt: skip
def test_a_map_without_an_order_is_not_assessable(scores: Scores, share: str | None) -> None:
    cohort = COHORT if len(scores) == len(COHORT.names) else ONE_TILE
    found = judged(scores, cohort).map
    assert (found.answer == "not assessable") == (share is not None)
    if share is not None:
        assert found.sentences[0].startswith(
            f"The map's first tiles are tied on {share} of the slides: it gives no order."
        )


@pytest.mark.parametrize("sign", [1, -1], ids=["best first", "best last"])
def test_ties_do_not_follow_the_file(sign: int) -> None:
    """Files that list the tiles by their evidence, one way or the other."""
    orders = [np.argsort(-sign * own) for own in COHORT.evidence]
    pairs = zip(COHORT.features, orders, strict=True)
    sorted_ = replace(COHORT, features=tuple(x[order] for x, order in pairs))
    found = judged(constant(sorted_), sorted_).map.comparison
    for axis in found.axes:
        assert abs(axis.d) < 0.35
        assert axis.result == "unclear"


# How many tiles?


def test_no_slide_hangs_on_more_tiles_than_it_has() -> None:
    """87 tiles on the median slide, where it has 41; and none with two slides fewer."""
    sizes = [200] * 16 + [41] * 14
    for n_found in (14, 15, 16):
        native: list[Pair] = [(3, 87)] * n_found + [(3, None)] * (N - n_found)
        found = answers_of({"native": native, "random": CHANCE}, n_tiles=sizes).tiles
        assert found.answer == f"87 tiles, on {n_found} of 30 slides"
        assert found.share.estimate == n_found / N
        assert found.of_slide == 87 / 200
        assert found.sentences[1] == (
            "On those the median is 87 tiles (87 to 87), 44% of the slide's tiles; quartiles 87 "
            "and 87."
        )


@given(
    st.lists(
        st.tuples(st.integers(2, 60), st.one_of(st.none(), st.integers(1, 59))),
        min_size=3,
        max_size=12,
    )
)
@tries(max_examples=25)
def test_counts_lie_within_slides(drawn: list[tuple[int, int | None]]) -> None:
    sizes = [n for n, _ in drawn]
    native: list[Pair] = [(1, flip if flip and flip < n else None) for n, flip in drawn]
    found = answers_of({"native": native, "random": [(1, None)] * len(drawn)}, n_tiles=sizes).tiles
    having = [(flip, n) for (_, flip), n in zip(native, sizes, strict=True) if flip]
    assert (found.n_slides, found.n_found) == (len(drawn), len(having))
    if having:
        assert found.count.estimate == np.median([flip for flip, _ in having])
        assert found.of_slide == np.median([flip / n for flip, n in having])
        assert found.of_slide < 1
        assert found.count.estimate <= max(n for _, n in having) - 1
    else:
        assert found.answer == "none found"


# Every better has a size


@pytest.mark.parametrize(
    ("wins", "gain", "answer"),
    [
        (30, 0.5, "headroom"),
        (30, 0.99, "native suffices"),  # everywhere, by one tile of a hundred
        (10, 0.99, "native suffices"),
        (10, 0.5, "headroom"),
        (2, 0.5, "inconclusive"),
    ],
)
def test_headroom_needs_a_size(wins: int, gain: float, answer: str) -> None:
    evidence: list[Pair] = [(3, round(100 * gain))] * wins + [(3, 100)] * (N - wins)
    pairs = {"native": [(3, 100)] * N, "evidence": evidence, "random": CHANCE}
    found = answers_of(pairs, n_tiles=1000).order
    axis = found.against_native.necessity
    assert (axis.wins, axis.losses, axis.ties) == (wins, 0, N - wins)
    assert found.answer == answer


@pytest.mark.parametrize(
    ("wins", "gain", "pays"), [(6, 1, False), (60, 1, False), (6, 20, False), (60, 20, True)]
)
def test_training_pays_only_by_a_size(wins: int, gain: int, pays: bool) -> None:
    """Six slides of 84, by a tile each, were said to pay."""
    trained: list[Pair] = [(3, 43 - gain)] * wins + [(3, 43)] * (84 - wins)
    same: list[Pair] = [(3, 43)] * 84
    chance: list[Pair] = [(40, None)] * 84
    pairs = {"native": same, "evidence": same, "selector": trained, "random": chance}
    found = answers_of(pairs).order
    said = "A trained order pays here: it beats evidence."
    open_ = "A trained order is not shown to add anything to evidence."
    assert found.sentences[-1] == (said if pays else open_)


# Chance is called chance


def test_truly_random_orders_get_a_no() -> None:
    found = [judged(ONE_TILE.chance(seed), ONE_TILE).map for seed in range(12)]
    refused = [one for one in found if one.answer in ("no better than chance", "worse than chance")]
    assert len(refused) >= 6
    assert not [one for one in found if one.answer in BELIEVED]
    numbers = [one.sentences[1] for one in refused if one.answer == "no better than chance"]
    start = "Its net share of slides over random orders is at most +0."
    assert numbers
    for line in numbers:
        assert line.startswith(start)
        assert float(line.removeprefix(start[:-3]).rstrip(".")) < 0.2


# Whatever the cohort


MAPS = st.tuples(
    st.integers(0, 3), st.floats(-2, 2), st.floats(-2, 2), st.floats(0.1, 3), st.integers(0, 99)
)


def drawn_map(cohort: AttentionCohort, drawn: Sequence[Any]) -> Scores:
    """Something of the attention, of the evidence and of chance."""
    _, attention, evidence, noise, seed = drawn
    rng = np.random.default_rng(seed)
    return [
        attention * a
        + evidence * np.sign(e) * np.log1p(np.abs(e))
        + noise * rng.normal(size=len(a))
        for a, e in zip(cohort.native, cohort.evidence, strict=True)
    ]


@given(MAPS)
@tries(max_examples=12)
def test_a_reversed_map_is_never_believed_where_the_map_is(drawn: Sequence[Any]) -> None:
    cohort = AttentionCohort.drawn(12, 60, seed=drawn[0])
    scores = drawn_map(cohort, drawn)
    answers = [judged(own, cohort).map.answer for own in (scores, reversed_(scores))]
    assert sum(answer == "yes" for answer in answers) < 2


@given(MAPS, st.randoms(use_true_random=False))
@tries(max_examples=8)
def test_slides_in_another_order_change_no_answer(drawn: Sequence[Any], random: Any) -> None:
    cohort = AttentionCohort.drawn(12, 60, seed=drawn[0])
    cohort = replace(cohort, cases=tuple(f"P{i % 8}" for i in range(12)))
    scores = drawn_map(cohort, drawn)
    rows = list(range(12))
    random.shuffle(rows)
    alone = judged(scores, cohort)
    other = judged([scores[row] for row in rows], cohort.of(rows))
    assert other.in_short == alone.in_short
    for question in ("map", "tiles", "order"):
        assert getattr(other, question).sentences == getattr(alone, question).sentences
    assert other.sensitivity == alone.sensitivity


@pytest.mark.parametrize(
    "transform",
    [lambda s: 3 * s - 7, np.exp, np.arctan, lambda s: s**3, lambda s: np.argsort(np.argsort(s))],
    ids=["affine", "exp", "arctan", "cube", "rank"],
)
@given(MAPS)
@tries(max_examples=4)
def test_a_strictly_monotone_transform_changes_nothing(
    transform: Callable[[Any], Any], drawn: Sequence[Any]
) -> None:
    cohort = AttentionCohort.drawn(10, 60, seed=drawn[0])
    scores = drawn_map(cohort, drawn)
    first, second = (
        cohort.summary({"native": own}).to_json()
        for own in (scores, [transform(one).astype(np.float64) for one in scores])
    )
    assert first == second
