"""Argument checks of the metrics, and the mean that leaves NaN out."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foci.errors import FociError

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Marks: TypeAlias = NDArray[np.bool_]
Counts: TypeAlias = ArrayLike | Sequence[float | None]
"""Minimum Sufficient K of many slides; None or NaN where a slide does not reach."""

SUM_TOLERANCE = 1e-3  # a softmax stored in half precision still passes, logits do not


def require(condition: object, name: str, what: str, fix: str) -> None:
    """Raise :class:`FociError` about an argument unless the condition holds."""
    if not condition:
        raise FociError(name, what, fix)


@contextlib.contextmanager
def located(prefix: str) -> Iterator[None]:
    """Errors inside also name the item that they are about."""
    try:
        yield
    except FociError as error:
        raise FociError(f"{prefix}{error.where}", error.what, error.fix) from error


def as_float_array(
    values: Counts, name: str, ndim: int | None = 1, *, missing: bool = False
) -> Floats:
    """Convert to a non-empty float64 array of ``ndim`` dimensions; NaN only if ``missing``."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        fix = "pass a rectangular array, or a detached CPU tensor"
        raise FociError(name, f"cannot be read as numbers ({error})", fix) from error
    if ndim is not None and array.ndim != ndim:
        raise FociError(name, f"has shape {array.shape}", f"pass an array of {ndim} dimension(s)")
    require(array.size, name, "is empty", "pass at least one value")
    bad = np.isinf(array) if missing else ~np.isfinite(array)
    require(not bad.any(), name, "contains NaN or infinity", "leave out or repair these values")
    return array


def as_int(value: SupportsIndex, name: str, lowest: int = 1) -> int:
    """Convert to an integer of at least ``lowest``."""
    try:
        number = operator.index(value)
    except TypeError as error:
        raise FociError(name, f"is {value!r}", "pass a whole number") from error
    require(number >= lowest, name, f"is {number}", f"pass {lowest} or more")
    return number


def as_counts(values: ArrayLike, name: str, lowest: int = 1) -> Integers:
    """Check tile counts from ``lowest`` on, such as the number of tiles of every slide."""
    array = as_float_array(values, name)
    counted = (array == np.floor(array)) & (array >= lowest)
    require(counted.all(), name, f"holds values that are not counts >= {lowest}", "count tiles")
    return array.astype(np.int64)


def as_bool_mask(truth: ArrayLike, n_tiles: int, *, some: bool = False) -> Marks:
    """Check one true/false mark per tile; with ``some``, at least one must be true."""
    array = as_float_array(truth, "truth")
    require(len(array) == n_tiles, "truth", f"has {len(array)} of {n_tiles} tiles", "mark them all")
    require(np.isin(array, (0, 1)).all(), "truth", "is not true or false", "mark with 0 and 1")
    marked = not some or array.any()
    require(marked, "truth", "marks no tile", "leave slides without marked tiles out")
    return array.astype(bool)


def threshold(kappa: float, name: str = "kappa") -> float:
    """Check a confidence or share in (0, 1]."""
    require(0 < kappa <= 1, name, f"is {kappa}", "pass a value above 0 and at most 1")
    return float(kappa)


def thresholds(kappa: float | ArrayLike, n_slides: int) -> Floats:
    """Check a confidence in (0, 1] for all slides, or one per slide; one per slide, ``[S]``."""
    array = as_float_array(kappa, "kappa", ndim=None)
    inside = (array > 0) & (array <= 1)
    bad = array.ravel()[inside.argmin()]
    require(inside.all(), "kappa", f"is {bad}", "pass a value above 0 and at most 1")
    fits = array.shape in ((), (n_slides,))
    what = f"has shape {array.shape} for {n_slides} slides"
    require(fits, "kappa", what, "pass one number, or one per slide")
    return np.broadcast_to(array, (n_slides,))


def probabilities(values: ArrayLike, name: str = "probs", ndim: int = 2) -> Floats:
    """Check class probabilities ``[..., C]``: C >= 2, in [0, 1], every row sums to 1."""
    array = as_float_array(values, name, ndim)
    require(array.shape[-1] > 1, name, "has a single class", "give the probability of every class")
    require(array.min() >= 0 and array.max() <= 1, name, "leaves [0, 1]", "give probabilities")
    off = np.abs(array.sum(axis=-1) - 1).max()
    require(off <= SUM_TOLERANCE, name, f"misses a sum of 1 by {off:.2g}", "give softmax outputs")
    return array


def increasing(
    ks: ArrayLike, length: int | None = None, *, lowest: int = 1, name: str = "ks"
) -> Integers:
    """Check tile counts: strictly increasing integers from ``lowest`` on, one per curve point."""
    array = as_float_array(ks, name)
    if length is not None and array.size != length:
        fix = "give one count per curve point"
        raise FociError(name, f"has {array.size} counts for {length} curve points", fix)
    counts = as_counts(array, name, lowest)
    rises = (np.diff(counts) > 0).all()
    require(rises, name, "is not strictly increasing", "sort the curve by its tile count")
    return counts


def class_index(target: SupportsIndex, n_classes: int) -> int:
    """Check a class index below ``n_classes``."""
    index = as_int(target, "target", lowest=0)
    require(index < n_classes, "target", f"is class {index}", f"pass a class up to {n_classes - 1}")
    return index


def class_indices(values: ArrayLike, name: str, n_classes: int | None = None) -> Integers:
    """Check one class index per slide, below ``n_classes`` if that is given."""
    array = as_float_array(values, name)
    indexed = (array == np.floor(array)) & (array >= 0)
    require(indexed.all(), name, "holds values that are not classes", "number classes from 0")
    if n_classes is not None:
        known = array.max() < n_classes
        require(known, name, "holds an unknown class", f"use classes 0 to {n_classes - 1}")
    return array.astype(np.int64)


def curve(
    probs: ArrayLike, ks: ArrayLike, target: SupportsIndex, *, lowest: int = 1
) -> tuple[Floats, Integers, int]:
    """Check one curve: probabilities ``[len(ks), C]``, its counts and the class followed."""
    rows = probabilities(probs)
    return rows, increasing(ks, len(rows), lowest=lowest), class_index(target, rows.shape[1])


def full_bag(full: ArrayLike, n_classes: int | None = None) -> Floats:
    """Check full-bag probabilities ``[C]`` of as many classes as the curve."""
    array = probabilities(full, "full", ndim=1)
    fits = n_classes is None or len(array) == n_classes
    require(fits, "full", f"has {len(array)} classes, the curve {n_classes}", "use one classifier")
    return array


def full_bags(full: ArrayLike, targets: ArrayLike) -> tuple[Floats, Integers]:
    """Check full-bag probabilities ``[S, C]``, and the class followed on each slide."""
    array = probabilities(full, "full")
    followed = class_indices(targets, "targets", array.shape[1])
    same_length(full=array, targets=followed)
    return array, followed


def up_to(ks: Integers, limit: SupportsIndex, name: str) -> int:
    """Check that no count exceeds a limit, and return the limit."""
    number = as_int(limit, name)
    require(ks[-1] <= number, "ks", f"ends at {ks[-1]}, above {name} {number}", f"check {name}")
    return number


def counts(values: Counts, name: str = "msks", ndim: int = 1) -> Floats:
    """Check MSK per slide, NaN where a slide does not reach.

    Means over random orders are not whole, so any value of at least 1 is a count.
    """
    array = as_float_array(values, name, ndim, missing=True)
    counted = np.isnan(array) | (array >= 1)
    require(counted.all(), name, "holds a count below 1", "count from 1; None if not reached")
    return array


def two_counts(**values: Counts) -> tuple[Floats, Floats]:
    """:func:`counts` of two arguments, by their names, for the same slides."""
    first, second = (counts(array, name) for name, array in values.items())
    same_length(**dict(zip(values, (first, second), strict=True)))
    return first, second


def count_orders(values: ArrayLike, name: str) -> Floats:
    """Check counts of one order or several, ``[R, S]``; NaN where a slide has none."""
    several = np.ndim(as_float_array(values, name, ndim=None, missing=True)) == 2
    return np.atleast_2d(counts(values, name, ndim=2 if several else 1))


def mean_counts(values: ArrayLike, name: str) -> Floats:
    """Check mean tile counts of any shape; none may be NaN."""
    array = as_float_array(values, name, ndim=None, missing=True)
    fix = "report Reach and the restricted mean instead"
    require(not np.isnan(array).any(), name, "has no MSK: no slide reaches kappa", fix)
    require(array.min() >= 0, name, "holds a negative tile count", "give mean MSK, one per seed")
    return array


def same_length(**arrays: Sized) -> int:
    """Check that arguments have the same length, at least 1, and return it."""
    lengths = {name: len(array) for name, array in arrays.items()}
    sizes = ", ".join(f"{name} {length}" for name, length in lengths.items())
    alike = len(set(lengths.values())) == 1
    require(alike, next(iter(arrays)), f"lengths differ ({sizes})", "pass one value per item")
    length = next(iter(lengths.values()))
    require(length, next(iter(arrays)), "is empty", "pass at least one item")
    return length


def defined_mean(values: Floats, axis: int | None = None) -> Floats:
    """Mean that ignores NaN; NaN where all values are, without the warning of ``np.nanmean``."""
    known = ~np.isnan(values)
    sums, n = np.where(known, values, 0.0).sum(axis=axis), known.sum(axis=axis)
    means: Floats = np.divide(sums, n, out=np.full(np.shape(sums), np.nan), where=n > 0)
    return means


def mean_of_rows(rows: Iterable[Floats]) -> Floats:
    """:func:`defined_mean` over rows of one shape, of which one at a time is in memory.

    >>> mean_of_rows(np.array(row) for row in ([1.0, np.nan], [3.0, np.nan]))
    array([ 2., nan])
    """
    sums, n = np.zeros(1), np.zeros(1, dtype=np.int64)
    for row in rows:
        known = ~np.isnan(row)
        sums, n = sums + np.where(known, row, 0.0), n + known
    means: Floats = np.divide(sums, n, out=np.full(sums.shape, np.nan), where=n > 0)
    return means
