"""SHI and captured headroom."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foci.metrics import captured_headroom, shi, shi_against_random, shi_per_seed
from tests.metrics.strategies import quick

tiles = st.floats(1, 256)


def test_seeds_are_averaged_before_the_ratio() -> None:
    base, foci = [2.0, 20.0], [1.0, 19.0]
    assert shi(base, foci) == pytest.approx(1 - 10 / 11)
    assert shi_per_seed(base, foci).mean == pytest.approx((0.5 + 0.05) / 2)


def test_eps_guards_an_empty_base() -> None:
    assert shi(0.0, 0.0) == 0.0
    assert shi(1.0, 0.5, eps=1.0) == 0.25


def test_one_seed_has_no_spread() -> None:
    spread = shi_per_seed(4.0, 2.0)
    assert spread.values == pytest.approx((0.5,))
    assert math.isnan(spread.sd)


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
