"""Quantiles with infinite counts, and the ratio of geometric means."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foci.errors import FociError
from foci.metrics import CountQuantile, geometric_mean_ratio, quantiles_with_missing
from tests.metrics.strategies import quick

ORDER = {None: 0, "beyond": 1, "none": 2}
MORE, NEVER = CountQuantile(None, "beyond"), CountQuantile(None, "none")

Slide = float | str
slides = st.lists(
    st.one_of(st.integers(1, 300), st.sampled_from(["beyond", "none"])), min_size=1, max_size=25
)
shares = st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.5, 0.7, 0.75, 0.9, 1.0])


def arrays(values: list[Slide]) -> tuple[list[float | None], list[bool]]:
    counts = [None if isinstance(value, str) else float(value) for value in values]
    return counts, [value == "beyond" for value in values]


def slow(values: list[Slide], q: float) -> CountQuantile:
    """By the definition, with the place as a fraction of whole numbers."""
    ordered = sorted((v for v in values if not isinstance(v, str)), key=float)
    line: list[Slide] = [*ordered, *(v for v in ("beyond", "none") for w in values if w == v)]
    tenths = round(100 * q) * (len(line) - 1)
    low, rest = divmod(tenths, 100)
    ends = [line[low]] if rest == 0 else [line[low], line[low + 1]]
    missing = [end for end in ends if isinstance(end, str)]
    if missing:
        return NEVER if "none" in missing else MORE
    return CountQuantile(float(ends[0]) + rest / 100 * (float(ends[-1]) - float(ends[0])), None)


def order(quantile: CountQuantile) -> tuple[int, float]:
    return ORDER[quantile.missing], quantile.value or 0.0


@quick
@given(slides, shares)
def test_equals_the_definition(values: list[Slide], q: float) -> None:
    got, want = quantiles_with_missing(*arrays(values), [q])[0], slow(values, q)
    assert got.missing == want.missing
    assert (got.value or 0) == pytest.approx(want.value or 0)


@quick
@given(st.lists(st.integers(1, 300), min_size=1, max_size=20))
def test_without_missing_counts_it_is_numpys(values: list[int]) -> None:
    got = quantiles_with_missing(values, [False] * len(values))
    want = np.quantile(values, [0.25, 0.5, 0.75])
    assert [quantile.value for quantile in got] == pytest.approx(want)


@quick
@given(slides, st.integers(0, 24), st.integers(0, 99))
def test_failing_never_looks_better_and_the_order_of_slides_is_nothing(
    values: list[Slide], at: int, seed: int
) -> None:
    failed = [*values]
    failed[at % len(values)] = "none"
    before, after = quantiles_with_missing(*arrays(values)), quantiles_with_missing(*arrays(failed))
    assert all(order(a) >= order(b) for a, b in zip(after, before, strict=True))
    mixed = [values[i] for i in np.random.default_rng(seed).permutation(len(values))]
    assert quantiles_with_missing(*arrays(mixed)) == before


def test_half_failed_is_infinite() -> None:
    assert quantiles_with_missing([1, None], [0, 1], [0.5]) == (MORE,)
    assert quantiles_with_missing([1, None, None], [0, 1, 0], [0, 0.5, 0.75]) == (
        CountQuantile(1.0, None),
        MORE,
        NEVER,
    )


def test_a_place_that_is_whole_stays_whole_in_floating_point() -> None:
    counts = [*range(1, 57), *[None] * 45]
    assert 100 * 0.55 > 55
    got = quantiles_with_missing(counts, [False] * 101, [0.55])
    assert got == (CountQuantile(56.0, None),)


def test_bad_input_is_refused() -> None:
    with pytest.raises(FociError, match="beyond: marks a slide that has a count"):
        quantiles_with_missing([1, 2], [1, 0])
    with pytest.raises(FociError, match="lengths differ"):
        quantiles_with_missing([1, 2], [0])
    with pytest.raises(FociError, match=r"q: leaves \[0, 1\]"):
        quantiles_with_missing([1, 2], [0, 0], [50])
    with pytest.raises(FociError, match="counts: is empty"):
        quantiles_with_missing([], [])
    with pytest.raises(FociError, match="beyond: is not true or false"):
        quantiles_with_missing([1, None], [0, 256])


@quick
@given(st.lists(st.tuples(st.integers(1, 300), st.integers(1, 300)), min_size=1, max_size=20))
def test_ratio_turns_over_with_the_rankings(pairs: list[tuple[int, int]]) -> None:
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    there, back = geometric_mean_ratio(a, b), geometric_mean_ratio(b, a)
    assert there.ratio * back.ratio == pytest.approx(1)
    assert there.n == back.n == len(pairs)
    assert geometric_mean_ratio(a, a).ratio == 1


def test_ratio_without_common_slides_is_nan() -> None:
    result = geometric_mean_ratio([1, None], [None, 2])
    assert math.isnan(result.ratio)
    assert result.n == 0
