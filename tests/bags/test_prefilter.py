"""The cap keeps the largest norms in bag order."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from foci.bags import Bag, prefilter


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 999))
def test_equals_a_slow_selection(n: int, cap: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(-2, 3, size=(n, 3)).astype(np.float32)
    bag = Bag("s", x, coords=rng.integers(0, 99, (n, 2)))

    kept = prefilter(bag, cap)

    ranked = sorted(range(n), key=lambda i: (-float((x[i].astype(float) ** 2).sum()), i))
    want = sorted(ranked[:cap])
    assert kept.tiles.tolist() == want
    assert kept.n_total == n
    np.testing.assert_array_equal(kept.features, x[want])
    np.testing.assert_array_equal(kept.coords, bag.coords[want])


def test_filtering_twice_still_names_the_tiles_of_the_file() -> None:
    x = np.arange(1, 11, dtype=np.float32)[::-1, None].copy()
    twice = prefilter(prefilter(Bag("s", x), 6), 2)
    assert twice.tiles.tolist() == [0, 1]
    assert (len(twice), twice.n_total) == (2, 10)
    assert repr(twice) == "Bag('s', 2 tiles x 1, of 10, memory)"


def test_small_bags_and_no_cap_are_left_alone() -> None:
    bag = Bag("s", np.ones((3, 2), np.float32))
    assert prefilter(bag, 3) is bag
    assert prefilter(bag, None) is bag
