r"""The smallest decisive set over *all* subsets of the tiles of a slide, by proof.

Pooling lets tiles meet only in weighted means, row by row: :class:`foci.parts.Parts` has the
equation of the logits of a set S. Below, t is the target, r a rival, :math:`m_i = E_{it} - E_{ir}`
the margin of tile i alone, :math:`M(S) = \ell_t(S) - \ell_r(S)`, X the slide and N its number of
tiles. A set T *flips* the decision if M(X without T) < 0 for some rival, and is *decisive* if it is
sufficient, too (see :func:`foci.metrics.decisive_k`). :func:`minimal_decisive` chooses the theorem:

- **T1** :func:`smallest_flip`: one row and a linear head; the smallest flipping set.
- **T2** :func:`minimal_decisive`: with two classes that set is decisive on every decided slide.
- **T4** :class:`Rows`: several rows, each bounded by :func:`least_ratios`.
- **T5** :class:`ReluHead`: one row and a head of two layers with a ReLU between them.
- **best tile** :func:`best_tile_flip`: max pooling.

(T3: M(S) is a weighted mean of the :math:`m_i`, so the smallest *sufficient* set of a decided slide
is one tile.)

**Near-ties.** Everything is computed in float64, and a margin is trusted up to ``tolerance`` times
the largest logit that a tile can give. Bounds hold for margins that are lower by that much, and a
set counts as decisive only if it is so with margins that are off by that much in either direction.
So whatever rounding did within the tolerance, no smaller set is decisive, and what is called exact
is exact; a slide whose minimum hangs on a near-tie gets a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from foci.metrics import inputs
from foci.metrics.cards import card
from foci.metrics.inputs import Counts, Floats, Integers
from foci.parts import Parts

TOLERANCE = 1e-9
"""Error of a margin that is reckoned with, relative to the largest logit of a tile."""

_WEIGHTLESS = 1e-290
"""Sums of weights below this have lost terms to underflow; the largest weight is 1."""

_LIGHT = 1e-30
"""Weights from here on are left to float64."""

_EPSILON = float(np.finfo(np.float64).eps)
"""Times N: rounding error of a sum over N tiles, relative to the sum of their absolute values."""

_TRIES = 4

Kind = Literal["exact", "lower bound", "none, proven", "no bound"]


@dataclass(frozen=True, eq=False)
class MinimalSet:
    """The smallest decisive set of one slide, as far as it can be proven.

    Attributes:
        k: Its number of tiles, K*: no smaller set is decisive. None without a set or a bound.
        tiles: ``[k]`` the set, in the order of removal, where K* is exact. With a lower bound by
            T1 it is the smallest set that flips; with any other, empty.
        kind: ``"exact"``: ``tiles`` is decisive and no smaller set is. ``"lower bound"``: no
            smaller set is decisive. ``"none, proven"``: no set of tiles decides this slide.
            ``"no bound"``: nothing is known of such a classifier.
        theorem: What proves it; empty for no bound.
    """

    k: int | None
    tiles: Integers
    kind: Kind
    theorem: str


_NO_TILES: Integers = np.empty(0, dtype=np.int64)

NO_BOUND = MinimalSet(None, _NO_TILES, "no bound", "")
"""What is known of any other classifier."""


def _weights(parts: Parts) -> tuple[Floats, Floats]:
    """Weights ``[R, N]``, of which the largest is 1, and those of the empty tile, ``[R]``."""
    peaks = parts.attention.max(axis=0)
    if parts.empty is None:
        return np.exp(parts.attention - peaks).T, np.zeros(len(peaks))
    peaks = np.maximum(peaks, 0.0)
    return np.exp(parts.attention - peaks).T, np.exp(-peaks)


def _margins(parts: Parts, target: int) -> tuple[Floats, Floats]:
    """Part of every row in M, ``[rivals, R, N]``, and of its empty tile, ``[rivals, R]``."""
    n_rows = parts.attention.shape[1]
    empty = np.zeros(parts.evidence.shape[1:]) if parts.empty is None else parts.empty
    tiles = np.vstack([parts.evidence, empty[None]])
    margins = (tiles[..., target, None] - np.delete(tiles, target, axis=2)).transpose(2, 1, 0)
    if margins.shape[1] < n_rows:
        margins = np.repeat(margins / n_rows, n_rows, axis=1)
    return np.ascontiguousarray(margins[..., :-1]), margins[..., -1]


def _scale(parts: Parts) -> float:
    """Largest logit that a tile can give, without regard to sign."""
    largest = np.maximum(parts.evidence.max(axis=(0, 1)), -parts.evidence.min(axis=(0, 1)))
    if parts.output is not None:
        return float((np.abs(parts.output) @ np.append(largest, 1.0)).max())
    return float(np.append(largest, [] if parts.empty is None else np.abs(parts.empty)).max())


def smallest_flip(terms: Floats, constant: float = 0.0) -> int | None:
    r"""T1: size of the smallest set whose removal makes a margin negative; None if there is none.

    *The least k < N for which the sum of the N - k smallest* :math:`g_i = e^{a_i} m_i` *is
    negative is the minimum over all subsets.*

    Proof. M(S) is the sum of :math:`g_i` over S, divided by a positive denominator: only the sum
    decides the sign. Of all S with N - k tiles, the k largest removed leaves the smallest sum.

    ``terms`` are the :math:`g_i` ``[N]``; softmax-plus-one adds the ``constant``
    :math:`b_t - b_r`, because its denominator is one more tile of weight 1. A sum of 0 counts.

    >>> smallest_flip(np.array([5.0, 1.0, -2.0, 3.0]))  # 5 and 3 away: -1 is left
    2
    >>> smallest_flip(np.array([1.0, 2.0])) is None
    True
    """
    kept = np.sort(terms)[:-1]
    rounding = len(terms) * _EPSILON * (np.abs(kept).cumsum() + abs(constant))
    flips = np.flatnonzero(kept.cumsum() + constant <= rounding + _WEIGHTLESS)
    return len(terms) - 1 - int(flips[-1]) if flips.size else None


def least_ratios(
    values: Floats,
    weights: Floats,
    n: int,
    empty: tuple[Floats, Floats] | None = None,
    most: float = math.inf,
) -> Floats:
    r"""Least weighted mean of n or more tiles, in every row, by Dinkelbach's iteration.

    *With* :math:`F(\rho)` *the least sum of* :math:`w_i (v_i - \rho)` *over the sets of n or more
    tiles, the least mean is the* :math:`\rho` *with* :math:`F(\rho) = 0`.

    Proof. A mean is at least :math:`\rho` if and only if its sum of :math:`w_i (v_i - \rho)` is not
    negative, and F takes the n smallest terms and all other negative ones. Each round sets
    :math:`\rho` to the mean of the set found; where it ends before F = 0, no set of weight W lies
    more than -F / W below :math:`\rho`, and W is at least the sum of the n smallest weights.

    From ``values`` ``[Q, N]`` and ``weights`` ``[Q or 1, N]`` (at most 1) to ``[Q]``; ``empty`` are
    value and weight, each ``[Q]``, of one more tile that is always there. The search starts from
    the mean of all tiles, or from ``most`` where that is above it.

    >>> least_ratios(np.array([[1.0, 4.0, 0.0]]), np.array([[1.0, 1.0, 0.5]]), 2).round(9)
    array([0.66666667])
    """
    extra, mass = (np.zeros(len(values)), np.zeros(len(values))) if empty is None else empty
    lightest = np.partition(weights, n - 1, axis=1)[:, :n].sum(axis=1) + mass
    lowest = values.min(axis=1)
    lowest = np.where(mass > 0, np.minimum(lowest, extra), lowest)
    bound: Floats = lowest.copy()
    todo = np.flatnonzero(lightest > _WEIGHTLESS)
    shared = len(weights) == 1  # by all rows: never copied
    v, w = values[todo], weights if shared else weights[todo]
    v0, w0 = extra[todo], mass[todo]
    rounding = values.shape[1] * _EPSILON * np.maximum(np.abs(v).max(axis=1), np.abs(v0))
    rho = (_row_products(v, w) + w0 * v0) / (w.sum(axis=1) + w0)
    rho = np.minimum(rho, most)
    light = bool(weights.min() < _LIGHT)
    while todo.size:
        terms = v - rho[:, None]
        terms *= w
        last = np.maximum(_above_smallest(terms, n, light), 0.0)
        chosen = (terms <= last[:, None]).astype(float)
        total = _row_products(chosen, w) + w0
        excess = _row_products(chosen, terms) + w0 * (v0 - rho)
        others = np.maximum(chosen.sum(axis=1) - n, 0.0) * last
        least = np.minimum(excess - others - rounding * total, 0.0)
        bound[todo] = np.maximum(bound[todo], rho + least / lightest[todo])
        step = excess / np.maximum(total, _WEIGHTLESS)
        moved = step < -rounding
        todo, rho, rounding = todo[moved], (rho + step)[moved], rounding[moved]
        v, w, v0, w0 = v[moved], w if shared else w[moved], v0[moved], w0[moved]
    return bound


def _row_products(rows: Floats, others: Floats) -> Floats:
    """Row by row the sum of products; ``others`` may be one row for all."""
    found: Floats = np.einsum("qn,qn->q", rows, np.broadcast_to(others, rows.shape))
    return found


def _above_smallest(terms: Floats, n: int, light: bool) -> Floats:
    """A threshold for every row ``[Q, N]`` that the n smallest terms do not pass, nor many more.

    Searched in float32, which is three times as fast, unless weights are too ``light`` for it: what
    passes it by rounding is subtracted again, so that the least sum stays a bound.
    """
    if light:
        found: Floats = np.partition(terms, n - 1, axis=1)[:, n - 1]
        return found
    short = terms.astype(np.float32)
    short.partition(n - 1, axis=1)
    return np.nextafter(short[:, n - 1], np.float32(np.inf)).astype(np.float64)


class Rows:
    r"""T4: several rows.

    *If, for every rival, the least means that N - k or more tiles can have in each row add up to
    more than 0, no set of k tiles flips. If even single tiles do, no set does.*

    Proof. M(S) is the sum of the rows' means over S, and each is at least its least mean. What
    remains when k tiles or fewer are removed has N - k or more tiles.

    It is a lower bound because each row may choose another S. With averaged rows of the same
    evidence (ACMIL) the least means of one tile are all the smallest :math:`m_i`, which makes
    "none if and only if all :math:`m_i` are positive" exact. With evidence of their own (CLAM-MB,
    AttriMIL) that is false: row t may weigh another tile than row r.
    """

    def __init__(self, parts: Parts, target: int, tolerance: float) -> None:
        self.margins, self.extra = _margins(parts, target)  # [rivals, R, N], [rivals, R]
        self.weights, self.mass = _weights(parts)  # [R, N], [R]
        self.tolerance = tolerance

    def proven(self, k: int) -> int:
        """A number up to k of tiles whose removal cannot flip: k, or 0 where that is not proven."""
        used = self.margins.any(axis=2) | (self.extra != 0)
        rivals, rows = np.nonzero(used)
        n, empty = self.margins.shape[2] - k, (self.extra[used], self.mass[rows])
        least = least_ratios(self.margins[used], self.weights[rows], n, empty)
        return k * bool((np.bincount(rivals, least, len(self.margins)) > self.tolerance).all())

    def orders(self) -> list[Integers]:
        """All tiles, for every rival, as they are likely to be removed best."""
        tiles = np.ones(self.margins.shape[2])
        return [_top(self._drops(rival, tiles), len(tiles)) for rival in range(len(self.margins))]

    def removed(self, k: int) -> list[Integers]:
        """Sets of k tiles that are likely to flip: the best for what the last one left."""
        found = []
        for rival in range(len(self.margins)):
            left = np.ones(self.margins.shape[2])
            for _ in range(_TRIES):
                found.append(_top(self._drops(rival, left), k))
                left = np.ones_like(left)
                left[found[-1]] = 0.0
        return found

    def _drops(self, rival: int, left: Floats) -> Floats:
        """How much M of the tiles that are left falls without each tile, to first order."""
        part, extra = self.margins[rival], self.extra[rival]
        total = np.maximum(self.weights @ left + self.mass, _WEIGHTLESS)
        means = ((self.weights * part) @ left + self.mass * extra) / total
        drops: Floats = (self.weights * (part - means[:, None]) / total[:, None]).sum(axis=0)
        return drops


class ReluHead:
    r"""T5: one row, and a head of two layers with a ReLU between them.

    *Let* :math:`x_u(S)` *be the pooled pre-activation of unit u, and* :math:`\lambda_u \le
    x_u(S) \le \mu_u` *over all S of N - k or more tiles. Replace each ReLU by a line that, between
    these, lies below it where the unit speaks for the target and above it where it speaks against.
    If T1 finds no flip of that linear margin within k tiles, there is none.*

    Proof. The lines make the linear margin a lower bound of M(S) for every such S, and it is the
    weighted mean of :math:`q_i`, its value at tile i, so T1 gives its least sign exactly.

    Whether a sign of :math:`x_u` is certain follows from a sum, as in T1; only other units need
    their range (:func:`least_ratios`). The line below may have any slope from 0 to 1: if the first
    choice fails, that which fits the worst set best is tried.
    """

    def __init__(self, parts: Parts, target: int, tolerance: float) -> None:
        output: Floats = parts.output  # type: ignore[assignment]
        self.weights = _weights(parts)[0][0]  # [N]
        self.hidden = np.ascontiguousarray(parts.evidence[:, 0].T)  # [H, N]
        self.totals = self.hidden @ self.weights  # [H]
        self.rounding = len(self.weights) * _EPSILON
        self.unsure = self.rounding * (np.abs(self.hidden) @ self.weights) + _WEIGHTLESS
        self.outputs = output[target] - np.delete(output, target, axis=0)  # [rivals, H + 1]
        self.tolerance = tolerance

    def proven(self, k: int) -> int:
        """A number up to k of tiles whose removal cannot flip.

        The lines that k needs hold for fewer tiles, too: one sort gives what they prove.
        """
        ranges, least, tight = self._ranges(len(self.weights) - k), k, False
        for output in self.outputs:
            terms, holds = self._terms(k, *ranges, output)
            if not holds and not tight:
                ranges, tight = self._tightened(len(self.weights) - k, *ranges), True
                terms, holds = self._terms(k, *ranges, output)
            if not holds:
                least = min(least, (smallest_flip(terms) or k + 1) - 1)
        return least

    def orders(self) -> list[Integers]:
        """All tiles, for every rival, as they are likely to be removed best."""
        units, bias = self.outputs[:, :-1] * (self.totals > 0), self.outputs[:, -1:]
        margins = units @ self.hidden + bias
        return [_top(self.weights * margin, len(self.weights)) for margin in margins]

    def removed(self, k: int) -> list[Integers]:
        """Sets of k tiles that are likely to flip."""
        n = len(self.weights) - k
        ranges = self._tightened(n, *self._ranges(n))
        return [_top(self._terms(k, *ranges, output)[0], k) for output in self.outputs]

    def _ranges(self, n: int) -> tuple[Floats, Floats]:
        """Bounds of every pre-activation over n or more tiles; of a sure sign only that one.

        Of other units that speak against the target, the end beyond 0 is the least possible, as
        seen from the sign on the whole slide, and the other end a tile's.
        """
        signs = np.where(self.totals > 0, 1.0, -1.0)
        terms = signs[:, None] * (self.weights * self.hidden)
        last = np.maximum(_above_smallest(terms, n, bool(self.weights.min() < _LIGHT)), 0.0)
        np.minimum(terms, last[:, None], out=terms)
        smallest = terms.sum(axis=1) - (terms.shape[1] - n) * last
        sure = smallest > self.unsure
        low = np.where(sure & (signs > 0), 0.0, -np.inf)
        high = np.where(sure & (signs < 0), 0.0, np.inf)
        chords = np.flatnonzero(~sure & (self.outputs[:, :-1] < 0).any(axis=0))
        towards = signs[chords, None] * self.hidden[chords]
        least = least_ratios(towards, self.weights[None], n, most=0.0)  # or the sign were sure
        most = np.maximum(towards.max(axis=1), 0.0)
        low[chords] = np.where(signs[chords] > 0, least, -most)
        high[chords] = np.where(signs[chords] > 0, most, -least)
        return low, high

    def _tightened(self, n: int, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """The same bounds with the least possible other end, where that is worth the time."""
        chords = np.flatnonzero(np.isfinite(low) & np.isfinite(high))
        signs = np.where(self.totals[chords] > 0, 1.0, -1.0)
        towards = signs[:, None] * self.hidden[chords]
        most, low, high = -least_ratios(-towards, self.weights[None], n), low.copy(), high.copy()
        low[chords] = np.where(signs > 0, low[chords], -most)
        high[chords] = np.where(signs > 0, most, high[chords])
        return low, high

    def _terms(self, k: int, low: Floats, high: Floats, output: Floats) -> tuple[Floats, bool]:
        """Terms of the linear margin, ``[N]``, and whether it keeps its sign without any k."""
        n, (output, bias) = len(self.weights) - k, (output[:-1], output[-1])
        slope = (low >= 0).astype(float)
        loose = (low < 0) & (high > 0)
        chord, free = loose & (output < 0), loose & (output > 0)
        slope[chord] = high[chord] / (high[chord] - low[chord])
        slope[free] = self.totals[free] > 0
        bias = bias - (output[chord] * slope[chord] * low[chord]).sum()
        for _ in range(_TRIES):
            terms = self.weights * ((output * slope) @ self.hidden + bias - self.tolerance)
            kept = np.argpartition(terms, n - 1)[:n]
            if terms[kept].sum() > self.rounding * np.abs(terms[kept]).sum() + _WEIGHTLESS:
                return terms, True
            left = np.zeros_like(self.weights)
            left[kept] = self.weights[kept]
            slope[free] = (self.hidden @ left)[free] > 0
        return terms, False


def best_tile_flip(parts: Parts, target: int, tolerance: float) -> tuple[int | None, Integers]:
    r"""Max pooling: size of the smallest flipping set, and the tiles in its order of removal.

    *Where every class has the logit of its best tile, let v be the largest rival logit of a tile
    that prefers this rival to the target: the tiles with a target logit above v are the smallest
    flipping set, and it is decisive if the slide is decided. Where one tile, the best by its score,
    gives all logits, the same holds of the tiles that score above the best one that prefers a
    rival. Without such a tile no set flips.*

    Proof. Each of these tiles, left in, beats v or outscores that tile; without them v wins. The
    set holds the best target tile of the slide and no rival above the slide's: its margins are at
    least those of the slide.
    """
    scores, error = parts.attention, tolerance * _scale(parts)
    if scores.shape[1] == 1:
        logits, blocking = parts.evidence[:, 0], scores[:, 0]
        slack = 2 * tolerance * np.abs(blocking).max()
        prefers = (logits[:, target, None] - np.delete(logits, target, axis=1) <= error).any(axis=1)
        challenge = np.where(prefers, blocking, -np.inf).max()
    else:
        blocking, rivals, slack = scores[:, target], np.delete(scores, target, axis=1), error
        challenge = np.where(blocking[:, None] - rivals <= slack, rivals, -np.inf).max()
    if np.isneginf(challenge):
        return None, _NO_TILES
    k = max(1, int((blocking - slack > challenge).sum()))
    return k, np.argsort(-blocking, kind="stable")


def nearest_rivals(
    parts: Parts, target: int, tolerance: float = 0.0
) -> list[tuple[int | None, Floats]]:
    r"""T1 for every rival, the nearest first: smallest flip, and its terms :math:`g_i` ``[N]``.

    Nearest is the rival to which the fewest tiles flip the decision; between equals, and where none
    can flip it, the one with the least margin on the slide. Weights are those of the whole slide:
    without a tolerance, by which all margins are lowered, the terms add up to the slide's margin.
    """
    margins, extra = _margins(parts, target)
    weights, mass = _weights(parts)
    terms = weights[0] * (margins[:, 0] - tolerance) / (weights.sum() + mass[0])
    constants = mass[0] * (extra[:, 0] - tolerance) / (weights.sum() + mass[0])
    sizes = [smallest_flip(*both) for both in zip(terms, constants, strict=True)]
    order = np.lexsort((terms.sum(axis=1) + constants, [k or np.inf for k in sizes]))
    return [(sizes[rival], terms[rival]) for rival in order]


def minimal_decisive(
    parts: Parts,
    target: SupportsIndex,
    kappa: float = 0.9,
    *,
    known: ArrayLike | None = None,
    tolerance: float = TOLERANCE,
    steps: int | None = None,
) -> MinimalSet:
    r"""The smallest decisive set of a slide over all subsets of its tiles; see the module.

    No set is decisive that does not flip, so the smallest flip (T1) or a bound on it (T4, T5) is a
    lower bound. It is exact where a set of that size is found to be decisive. T2 says when that
    never fails: *with two classes, one row and a linear head, every set that flips a decided slide
    is sufficient.*

    Proof. :math:`M(X) = \alpha M(T) + (1 - \alpha) M(X \setminus T)` with the share
    :math:`\alpha` of T in the weight. If the second margin is negative, the first exceeds M(X).

    Three or more classes, softmax-plus-one with a bias for the rival, and undecided slides can have
    a smallest flip that is not sufficient. A slide of one tile has no decisive set, as nothing
    would be left.

    Args:
        parts: What the logits of every set of tiles follow from.
        target: The class followed, usually the full-bag prediction.
        kappa: Confidence that makes a set sufficient.
        known: Tiles of a set that may be decisive, such as one that a ranking found. If it is and
            the bound reaches its size, the minimum is exact.
        tolerance: Error of a margin to reckon with, relative to the largest logit of a tile.
        steps: Most steps of the search for the bound of T4 and T5; the first tests the smallest set
            known. A search that ends early gives a smaller lower bound. None for no limit.

    >>> attention = [[0.0], [0.0], [0.0], [0.0]]
    >>> evidence = [[[0.0, 9.0]], [[0.0, 5.0]], [[3.0, 0.0]], [[3.0, 0.0]]]
    >>> found = minimal_decisive(Parts(attention, evidence), target=1)
    >>> found.k, found.tiles.tolist(), found.kind, found.theorem
    (1, [0], 'exact', 'T2')
    """
    n, confidence = len(parts.attention), inputs.threshold(kappa)
    followed = inputs.class_index(target, parts.n_classes)
    error = tolerance * _scale(parts)
    fix = "check features and weights"
    inputs.require(np.isfinite(parts.attention.sum() + error), "parts", "are not finite", fix)
    given = _NO_TILES if known is None else inputs.as_counts(known, "known", lowest=0)
    distinct = len(np.unique(given)) == len(given) < n and (not given.size or given.max() < n)
    inputs.require(distinct, "known", "is no smaller set of tiles", "list its tiles once each")

    def flips(tiles: Integers) -> bool:
        return _flips(parts, tiles, followed, error)

    def first_flip(order: Integers, fewer: int) -> Integers:
        if fewer < 2 or not flips(order[: fewer - 1]):
            return _NO_TILES
        return order[: _first(lambda k: flips(order[:k]), fewer - 1)]

    k: int | None
    flipping = _NO_TILES
    if n == 1:
        return MinimalSet(None, _NO_TILES, "none, proven", "one tile")
    if parts.hard:
        theorem = "best tile"
        k, order = best_tile_flip(parts, followed, tolerance)
        tried = [order[:k]]
    elif parts.structure == "linear head":
        theorem = "T2" if parts.n_classes == 2 and parts.empty is None else "T1"
        rivals = nearest_rivals(parts, followed, error)
        k = rivals[0][0]
        tried = [_top(terms, size) for size, terms in rivals if size is not None and size == k]
        flipping = tried[0] if tried else flipping
    else:
        theorem = "T4" if parts.output is None else "T5"
        bound = (Rows if parts.output is None else ReluHead)(parts, followed, error)
        sizes = [len(given)] if given.size and flips(given) else []
        tried = [first_flip(order, min(sizes, default=n)) for order in bound.orders()]
        sizes += [len(tiles) for tiles in tried if tiles.size]
        k, searched = _lower_bound(bound.proven, min(sizes, default=n), steps)
        tried += bound.removed(k) if searched and k not in (n, *sizes) else []
        k = None if k == n else k
    if k is None:
        return MinimalSet(None, _NO_TILES, "none, proven", theorem)
    for tiles in (given, *tried):
        if (
            len(tiles) == k
            and flips(tiles)
            and _suffices(parts, tiles, followed, confidence, error)
        ):
            return MinimalSet(k, tiles, "exact", theorem)
    return MinimalSet(k, flipping, "lower bound", theorem)


def _first(meets: Callable[[int], bool], n: int) -> int:
    """Smallest k in 1..n that meets a condition which larger ones meet, too; n if no other does.

    In growing steps up from 1, and by bisection from the first one that meets it.
    """
    low, high, step = 0, n, 1
    while high - low > 1:
        probe = low + step
        if not step or not low < probe < high:
            probe = (low + high) // 2
        found = meets(probe)
        low, high = (low, probe) if found else (probe, high)
        step = 0 if found else max(2 * step, n // 16)
    return high


def _lower_bound(proven: Callable[[int], int], n: int, steps: int | None) -> tuple[int, bool]:
    """Smallest k up to n that is not proven to be too few, and whether the search came to its end.

    At n - 1 first, which proves a set of n tiles minimal, then by bisection.
    """
    low, high, probe = 0, n, n - 1
    while high - low > 1 and steps != 0:
        reached = proven(probe)
        low, high = max(low, reached), high if reached == probe else probe
        probe, steps = (low + high) // 2, None if steps is None else steps - 1
    return low + 1, high - low <= 1


def _flips(parts: Parts, tiles: Integers, target: int, tolerance: float) -> bool:
    """Whether the decision flips without some tiles although margins are off by the tolerance."""
    present = np.ones(len(parts.attention), dtype=bool)
    present[tiles] = False
    logits = parts.logits(present)
    return bool(np.delete(logits, target).max() - logits[target] > tolerance)


def _suffices(parts: Parts, tiles: Integers, target: int, kappa: float, tolerance: float) -> bool:
    """Whether some tiles alone suffice although margins are off by the tolerance."""
    present = np.zeros(len(parts.attention), dtype=bool)
    present[tiles] = True
    logits = parts.logits(present)
    margins = logits[target] - np.delete(logits, target)
    log_odds = -np.logaddexp.reduce(-margins)
    needed = math.inf if kappa == 1 else math.log(kappa / (1 - kappa))
    return bool(margins.min() > tolerance and log_odds >= needed + tolerance)


def _top(scores: Floats, k: int) -> Integers:
    """The k tiles of the highest scores, highest first."""
    tiles = np.argpartition(-scores, k - 1)[:k]
    chosen: Integers = tiles[np.lexsort((tiles, -scores[tiles]))]
    return chosen


def efficiencies(k_star: Counts, k: Counts, k_max: SupportsIndex = 256) -> Floats:
    """K*/K of every slide ``[S]``: 0 where K is missing, NaN for slides that leave the mean.

    Those are slides without a decisive set (proven), without a bound, and with a K* beyond the last
    count ``k_max``, which no measured order could show. Arguments as in :func:`efficiency`.

    >>> efficiencies([3, 4, None, 300], [6, None, None, None]).tolist()
    [0.5, 0.0, nan, nan]
    """
    least, found = inputs.two_counts(k_star=k_star, k=k)
    below = int(np.sum(found < least))
    fix = "use the minimum of the same classifier, slide and target"
    inputs.require(not below, "k", f"is below the proven minimum on {below} slide(s)", fix)
    ratios = np.where(np.isnan(found), 0.0, least / found)
    return np.where(least <= inputs.as_int(k_max, "k_max"), ratios, np.nan)


@card(
    title="Efficiency",
    symbol=r"\mathrm{Eff}",
    direction="higher",
    range=(0.0, 1.0),
    needs="the proven minimum K* of every slide and decisive K of a ranking",
    does_not_show="how far a ranking is from the optimum where K* is only a lower bound; an "
    "attention map does not know the class, which is part of its distance",
    source="FOCI; theorems T1 to T5",
)
def efficiency(k_star: Counts, k: Counts, k_max: SupportsIndex = 256) -> float:
    r"""How near a ranking's decisive sets are to the smallest possible ones: mean of K*/K.

    .. math:: \mathrm{Eff} = \frac1S \sum_s \frac{K^*_s}{K_s}, \qquad
       \frac{K^*_s}{K_s} = 0 \text{ where the ranking finds no decisive set}

    ``k_star`` are the proven minima (:func:`minimal_decisive`), None or NaN where there is none or
    no bound, ``k`` the ranking's decisive K, None or NaN where it found none. Slides without K* and
    those with a K* above ``k_max`` are left out (:func:`efficiencies` shows which). NaN if all are.

    >>> efficiency([3, 4, None], [6, 4, 9])
    0.75
    """
    return float(inputs.defined_mean(efficiencies(k_star, k, k_max)))
