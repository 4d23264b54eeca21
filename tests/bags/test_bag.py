"""A bag: its fingerprint, the spacing of its tiles, and the cap that keeps the largest norms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foci.bags import Bag, prefilter
from foci.bags.bag import share_on_grid, spacing
from tests.makers import features as write

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 80)).astype(np.float32)


@given(st.permutations(range(40)), st.booleans())
def test_order_and_half_precision_keep_the_fingerprint(order: list[int], half: bool) -> None:
    x = X[order].astype(np.float16).astype(np.float32) if half else X[order]
    assert Bag("other", x).fingerprint() == Bag("name", X).fingerprint()


@pytest.mark.parametrize(
    "other",
    [X[:39], X[:, :79], np.vstack([X, X[:1]]), X * 1.01, RNG.normal(size=X.shape)],
)
def test_other_content_has_another_fingerprint(other: np.ndarray) -> None:
    found = Bag("s", other.astype(np.float32)).fingerprint()
    assert found != Bag("s", X).fingerprint()
    assert len(found) == 32


def test_a_cap_that_keeps_the_tiles_it_covers_keeps_the_fingerprint() -> None:
    x = X.copy()
    x[:20] += 5  # the largest norms are the largest sums
    assert prefilter(Bag("s", x), 20).fingerprint() == Bag("s", x).fingerprint()


def test_values_beyond_half_precision_and_negative_zero() -> None:
    x = np.array([[1e6, -0.0], [2.0, 0.0]], dtype=np.float32)
    assert Bag("s", x).fingerprint() == Bag("s", np.abs(x)).fingerprint()


def test_zero_tiles_are_counted() -> None:
    x = np.array([[0, 0], [0, 1e-30], [1, 0], [-0.0, 0]], dtype=np.float32)
    assert Bag("s", x).n_zero == 2


@pytest.mark.parametrize("width", [3, 48, 80])
@pytest.mark.parametrize("copies", [1, 2, 3])
def test_repeated_tiles_are_counted(width: int, copies: int) -> None:
    x = np.random.default_rng(1).lognormal(0, 9, size=(300, width)).astype(np.float32)
    order = np.random.default_rng(2).permutation(300 * copies)
    every = np.vstack([x] * copies)[order]
    found = Bag("s", every).n_repeated
    counts = np.unique(every, axis=0, return_counts=True)[1]
    assert found == counts[counts > 1].sum() == (0 if copies == 1 else 300 * copies)


def test_tiles_with_equal_first_columns_are_not_repeated() -> None:
    x = np.zeros((6, 70), dtype=np.float32)
    x[:4, :64], x[[0, 2], 69] = 1, 5
    x[1, 68] = 2
    assert Bag("s", x).n_repeated == 2, "tiles 0 and 2; 1 and 3 differ at the end, 4 and 5 are zero"


def test_the_norm_of_half_of_the_tiles_is_larger() -> None:
    x = np.array([[0, 0], [3, 4], [-6, 8], [0, 1], [1e20, 1e20]], dtype=np.float32)
    assert Bag("s", x).feature_norm == 5
    assert Bag("s", x[:4]).feature_norm == 3
    assert Bag("s", x[:4]).feature_mean == 10 / 8


def test_contours_with_different_origins() -> None:
    coords = write.contour_grid(512)
    assert spacing(coords) == 512
    assert share_on_grid(coords, 512) == 1


def test_gaps_do_not_hide_the_spacing() -> None:
    coords = write.grid(40, 256, 8)[[0, 1, 2, 5, 8, 9, 11, 16, 17, 18, 25]]
    assert spacing(coords) == 256


@pytest.mark.parametrize("coords", [[[5, 5]], [[0, 0], [3, 7]]])
def test_no_neighbours_no_spacing(coords: list[list[int]]) -> None:
    assert spacing(np.array(coords)) is None
    assert share_on_grid(np.array(coords), 256) == 1


def test_jitter_is_not_a_grid() -> None:
    coords = np.stack([np.arange(0, 5000, 251) + np.arange(20) ** 2, np.zeros(20)], 1)
    assert share_on_grid(coords, 251) < 0.2


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
