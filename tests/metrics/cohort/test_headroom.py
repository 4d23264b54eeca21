"""SHI, captured headroom, and MSK where both rankings reach."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foci.metrics import (
    captured_headroom,
    msk_cond,
    paired_msk,
    shi,
    shi_against_random,
)
from tests.metrics.strategies import msks, quick

tiles = st.floats(1, 256)


def test_seeds_are_averaged_before_the_ratio() -> None:
    base, foci = [2.0, 20.0], [1.0, 19.0]
    assert shi(base, foci) == pytest.approx(1 - 10 / 11)


def test_eps_guards_an_empty_base() -> None:
    assert shi(0.0, 0.0) == 0.0
    assert shi(1.0, 0.5, eps=1.0) == 0.25


@quick
@given(tiles, tiles)
def test_sign_says_who_needs_fewer_tiles(base: float, foci: float) -> None:
    value = shi(base, foci)
    assert (value > 0) == (foci < base)
    assert (value < 0) == (foci > base)
    assert value < 1


def test_beating_the_proxy_can_still_lose_to_chance() -> None:
    proxy, selector, chance = 38.0, 17.0, [5.1, 4.9, 5.0]
    assert shi(proxy, selector) == pytest.approx(0.5526, abs=1e-4)
    assert shi_against_random(chance, selector) == pytest.approx(-2.4)


def test_random_orders_of_several_seeds_are_averaged_together() -> None:
    assert shi_against_random([[4.0, 6.0], [5.0, 5.0]], [2.0, 3.0]) == pytest.approx(0.5)


@quick
@given(tiles, tiles)
def test_captured_headroom_is_one_at_the_bound_and_zero_at_the_start(a: float, b: float) -> None:
    greedy, base = sorted((a, b))
    if base > greedy:
        assert captured_headroom(base, greedy, greedy) == 1
        assert captured_headroom(base, base, greedy) == 0
    else:
        assert math.isnan(captured_headroom(base, base, greedy))


def test_slides_of_one_ranking_only_are_counted_not_averaged() -> None:
    pair = paired_msk(base=[10, 200, None], foci=[4, None, 1])
    assert (pair.base, pair.foci) == (10, 4)
    assert (pair.n_both, pair.n_base_only, pair.n_foci_only, pair.n_neither) == (1, 1, 1, 0)


def test_no_common_slide_gives_no_means() -> None:
    pair = paired_msk([1, None], [None, 1])
    assert math.isnan(pair.base)
    assert math.isnan(pair.foci)


@quick
@given(msks)
def test_a_ranking_paired_with_itself_is_its_conditional_mean(values: list[int | None]) -> None:
    pair = paired_msk(values, values)
    mean = msk_cond(values)
    if math.isnan(mean):
        assert math.isnan(pair.base)
        assert math.isnan(pair.foci)
    else:
        assert pair.base == pair.foci == mean
    assert pair.n_both + pair.n_neither == len(values)


@quick
@given(msks)
def test_swapping_the_rankings_swaps_the_result(values: list[int | None]) -> None:
    other = values[::-1]
    there, back = paired_msk(values, other), paired_msk(other, values)
    assert (there.n_both, there.n_base_only) == (back.n_both, back.n_foci_only)
    assert there.base == back.foci or math.isnan(there.base)
