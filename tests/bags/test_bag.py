"""A bag is known by its content, and counts its empty tiles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foci.bags import Bag, prefilter

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
