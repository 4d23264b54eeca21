"""Numbers are cut for the page such that it shows the digits of the full number."""

import math

from hypothesis import given
from hypothesis import strategies as st

from foci.reports.payload import cut_to, rounded
from foci.words import decimals

numbers = st.floats(-300, 300, allow_nan=False)


@given(numbers, st.integers(0, 3))
def test_a_cut_number_is_shown_like_the_full_one(value: float, digits: int) -> None:
    assert decimals(cut_to(value, 5), digits) == decimals(value, digits)
    assert math.isclose(cut_to(value, 5), value, abs_tol=1.1e-5)


@given(st.integers(0, 400), st.integers(1, 400))
def test_a_cut_share_is_shown_like_the_full_one(part: int, whole: int) -> None:
    share = min(part / whole, 1.0)
    assert decimals(100 * cut_to(share, 5), 0) == decimals(100 * share, 0)


def test_rounding_twice_is_what_it_avoids() -> None:
    assert decimals(round(0.10046, 4), 3) == "0.101"
    assert decimals(cut_to(0.10046, 4), 3) == decimals(0.10046, 3) == "0.100"
    assert rounded({"a": [0.5, 2.0, None]}, 3) == {"a": [0.5, 2, None]}
