"""Two rankings where both reach."""

import math

from hypothesis import given

from foci.metrics import msk_cond, paired_msk
from tests.metrics.strategies import msks, quick


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
