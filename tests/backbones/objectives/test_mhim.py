"""Which tiles are hidden, against the published code and against counting."""

import math
from fractions import Fraction
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from foci.backbones.models.mhim import MHIM, mask_tiles, share
from foci.errors import FociError
from tests.backbones.golden_mhim import GOLDEN
from tests.backbones.golden_weights import fill

RATIO = st.integers(0, 100).map(lambda percent: percent / 100)


def hidden(attention: torch.Tensor, seed: int = 0, **ratios: float) -> list[int]:
    zero = {"random": 0.0, "low": 0.0, "high": 0.0, "high_draw": 1.0}
    torch.manual_seed(seed)
    mask = mask_tiles(attention, **(zero | ratios))
    return mask.nonzero().flatten().tolist()


@pytest.mark.parametrize("row", GOLDEN["masks"], ids=str)
def test_each_set_has_the_published_size_and_tiles(row: dict[str, Any]) -> None:
    n = row["N"]
    attention = fill("attn", (1, n))[0]
    high = {"high": row["r_h"], "high_draw": row["r_hr"]}

    assert len(hidden(attention, random=row["r"])) == min(row["size_random"], n - 1)
    low = hidden(attention, low=row["r_l"])
    assert len(low) == min(row["size_low"], n - 1)
    assert low == row.get("low_ids", low)
    top = hidden(attention, **high)
    assert len(top) == min(row["size_high"], n - 1)
    assert top == row.get("high_ids", top)

    sizes = [row["size_random"], row["size_low"], row["size_high"]]
    for seed in range(5):
        union = hidden(attention, seed, random=row["r"], low=row["r_l"], **high)
        assert min(max(sizes), n - 1) <= len(union) <= min(sum(sizes), n - 1)
        assert n - len(union) == 1 or set(low) <= set(union)


@given(st.integers(1, 60), RATIO, RATIO, RATIO, RATIO, st.integers(0, 100))
def test_at_least_one_tile_stays_and_the_union_is_within_bounds(
    n: int, random: float, low: float, high: float, draw: float, seed: int
) -> None:
    attention = torch.randn(n, generator=torch.Generator().manual_seed(seed))
    ratios = {"random": random, "low": low, "high": high, "high_draw": draw}

    count = len(hidden(attention, seed, **ratios))

    assert count <= n - 1
    assert count >= min(n - 1, max(math.ceil(n * Fraction(str(r))) for r in (random, low, high)))


def test_drawn_tiles_come_from_the_highest_candidates_and_vary() -> None:
    attention = torch.arange(100.0)
    draws = {tuple(hidden(attention, seed, high=0.05, high_draw=0.5)) for seed in range(20)}
    assert all(len(draw) == 5 and min(draw) >= 90 for draw in draws)
    assert len(draws) > 10


@given(st.integers(0, 5000), st.integers(0, 100))
def test_share_is_the_exact_ceiling(n: int, percent: int) -> None:
    assert share(n, percent / 100) == math.ceil(Fraction(n * percent, 100))


def test_ratios_outside_the_unit_interval_are_refused() -> None:
    with pytest.raises(FociError, match=r"mask_low: is 1\.5; choose it in \[0, 1\]"):
        MHIM(4, 2, d=2, hidden=2).make_objective(mask_low=1.5)
