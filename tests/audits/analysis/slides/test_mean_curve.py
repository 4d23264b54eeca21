"""The curve of a cohort and its band."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from foci.audits.measure import common_counts, spread_over_orders, spread_over_slides
from tests.makers.curves import curve


def test_bands() -> None:
    ks = np.array([1, 2])
    first = np.array([[0.0, 0.5], [1.0, 0.5]])
    second = np.array([[0.5, 0.5], [0.5, 1.0]])
    by_slide = spread_over_slides(ks, [first, second])
    assert by_slide.mean.tolist() == [0.5, 0.625]
    assert by_slide.low.tolist() == [0.375, 0.5625]  # quartiles of (0.25, 0.75) and (0.5, 0.75)
    by_order = spread_over_orders(ks, [first, second])
    assert by_order.mean.tolist() == [0.5, 0.625]
    assert (by_order.low.tolist(), by_order.high.tolist()) == ([0.5, 0.5], [0.5, 0.75])
    three = [np.array([[value]]) for value in (0.97, 0.93, 0.98)]
    band = spread_over_orders(ks[:1], three)
    assert (band.low.tolist(), band.high.tolist()) == ([0.93], [0.98])
    np.testing.assert_allclose(band.mean, [0.96])


def test_the_largest_slide_gives_the_counts() -> None:
    curves = [curve(f"s{n}", "native", None, 1, n_tiles=n) for n in (3, 9, 5)]
    assert common_counts(curves).tolist() == list(range(1, 10))


@given(
    st.lists(
        st.lists(st.integers(1, 12), min_size=1, unique=True).map(sorted), min_size=1, max_size=8
    )
)
def test_common_counts_by_loop(counts: list[list[int]]) -> None:
    curves = [
        replace(curve(f"s{n}", "native", None, 1), ks=np.array(ks)) for n, ks in enumerate(counts)
    ]
    every = sorted({k for ks in counts for k in ks})
    expected = [k for k in every if all(k in ks for ks in counts if ks[-1] >= k)]
    assert common_counts(curves).tolist() == expected
