"""Reveal curves: where one becomes sufficient (MSK), whether it stays so, and the area under it.

Every definition stands once, over ``[..., K]`` arrays (:func:`followed`, :func:`first_crossing`,
:func:`stable_from`, :func:`area_over_counts`). ``msk``, ``stable_msk`` and ``aukc`` apply it to one
curve, :func:`operating_points` to the curves of a whole cohort.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import trapezoid

from foci.errors import FociError
from foci.metrics import inputs
from foci.metrics.cards import card
from foci.metrics.inputs import Counts, Floats, Integers, Marks

MAX_MEAN_DEVIATION = 0.05
"""How far, on average, counts that were left out may lie outside the range of those around them."""

BLOCK = 1024  # slides per stack: 256 counts of two classes are 4 MB


def area_over_counts(values: Floats, ks: Integers, divisor: int | None = None) -> Floats:
    """Trapezoid rule over the counts for every row of ``[..., K]``, divided by the last count.

    A single value is its own area.
    """
    if len(ks) == 1:
        return values[..., 0]
    area: Floats = trapezoid(values, ks, axis=-1) / (ks[-1] if divisor is None else divisor)
    return area


def area_error(values: Floats, ks: Integers) -> Floats:
    r"""Bound on the error of :func:`area_over_counts` on a grid, against the area over every count.

    .. math:: \frac{1}{K_m} \sum_j (K_{j+1} - K_j - 1) \min\Big(1,\; \sigma +
       \max_{j-1 \le i \le j+2} p(K_i) - \min_{j-1 \le i \le j+2} p(K_i)\Big)

    It holds for every curve whose counts that were left out lie, on average, at most
    :math:`\sigma = 0.05` outside the range of the four counts around them; no bound without such an
    assumption is of use, because one more tile may change any answer. 0 where no count was left
    out.

    >>> round(float(area_error(np.array([0.25, 0.5, 0.5, 0.75]), np.array([1, 2, 4, 8]))), 5)
    0.18125
    """
    if len(ks) == 1:
        return np.zeros(values.shape[:-1])
    ends = np.concatenate([values[..., :1], values, values[..., -1:]], axis=-1)
    around = np.stack([ends[..., start : len(ks) - 1 + start] for start in range(4)])
    reach = np.minimum(1.0, around.max(axis=0) - around.min(axis=0) + MAX_MEAN_DEVIATION)
    error: Floats = (reach * (np.diff(ks) - 1)).sum(axis=-1) / ks[-1]
    return error


@dataclass(frozen=True, eq=False)
class Followed:
    """Outputs of the model as seen from the class that is followed, one value per output.

    Attributes:
        confidence: What is compared with a threshold: the probability of the class; NaN where no
            output is known.
        kept: Whether the model decides for the class. Where it does not, the decision has flipped.
    """

    confidence: Floats
    kept: Marks

    def sure(self, threshold: float | Floats) -> Marks:
        """Where the model decides for the class with at least this confidence."""
        marks: Marks = self.kept & (self.confidence >= threshold)
        return marks

    def lost(self, beta: float | None = None) -> Marks:
        """Where the decision has flipped; or where at most ``beta`` of the probability is left."""
        if beta is not None:
            return self.confidence <= beta
        marks: Marks = ~self.kept & ~np.isnan(self.confidence)
        return marks


def followed(outputs: Floats, targets: int | Integers) -> Followed:
    """Read the model's outputs for a target class.

    Where two classes are largest, the model decides for the one with the lower index.

    Args:
        outputs: ``[..., C]`` class probabilities: of whole slides ``[S, C]``, of one curve
            ``[K, C]``, of several curves ``[S, K, C]``.
        targets: The class that is followed, one for all or one per slide.

    >>> curve = followed(np.array([[0.75, 0.25], [0.1, 0.9]]), 1)
    >>> curve.confidence.tolist(), curve.kept.tolist(), curve.sure(0.9).tolist()
    ([0.25, 0.9], [False, True], [False, True])
    """
    classes = np.asarray(targets)
    each = classes.reshape(classes.shape + (1,) * (outputs.ndim - 1 - classes.ndim))
    confidence = np.take_along_axis(outputs, each[..., None], axis=-1)[..., 0]
    return Followed(confidence, outputs.argmax(axis=-1) == each)


def first_crossing(steps: Marks, ks: Integers) -> Floats:
    """First marked count of every row of ``[..., K]``; NaN if none is marked."""
    return np.where(steps.any(axis=-1), ks[steps.argmax(axis=-1)], np.nan)


def count_or_none(count: float | Floats) -> int | None:
    """One count as an integer; None for NaN."""
    return None if np.isnan(count) else int(count)


def reached(msks: Floats) -> Marks:
    """Where a count exists."""
    return ~np.isnan(msks)


@card(
    title="Minimum Sufficient K",
    symbol=r"\mathrm{MSK}_s(\kappa)",
    direction="lower",
    range=(1, math.inf),
    needs="one insertion curve with the probabilities of all classes",
    does_not_show="that these tiles suffice for a diagnosis, or that the model stays confident "
    "when more tiles follow",
    source="the paper, Sequential Reveal Protocol",
)
def msk(probs: ArrayLike, ks: ArrayLike, target: SupportsIndex, kappa: float = 0.9) -> int | None:
    r"""Minimum Sufficient K: fewest top-ranked tiles for a confident prediction of the target.

    .. math:: \mathrm{MSK}_s(\kappa) = \min\{K \le K_{\max} : \arg\max_c p_c(K) = y \wedge p_y(K)
       \ge \kappa\}

    Args:
        probs: ``[len(ks), C]``, the revealed tiles' class probabilities.
        ks: Reveal counts, strictly increasing.
        target: The class followed: the label, or the full-bag prediction.
        kappa: Operating confidence in (0, 1].

    Returns:
        The count, or None where the curve never reaches kappa. Where two classes are largest,
        the one with the lower index is predicted.

    >>> msk([[0.6, 0.4], [0.2, 0.8], [0.05, 0.95]], ks=[1, 2, 3], target=1)
    3
    >>> msk([[0.6, 0.4], [0.2, 0.8], [0.05, 0.95]], ks=[1, 2, 3], target=0) is None
    True
    """
    curve, counts, aim = inputs.curve(probs, ks, target)
    steps = followed(curve, aim).sure(inputs.threshold(kappa))
    return count_or_none(first_crossing(steps, counts))


@card(
    title="Reach",
    symbol=r"\mathrm{Reach}(\kappa)",
    direction="higher",
    range=(0.0, 1.0),
    needs="MSK of every slide, None where it does not exist",
    does_not_show="that the reached slides were classified correctly with all their tiles",
    source="the paper, Sequential Reveal Protocol",
)
def reach(msks: Counts) -> float:
    r"""Reach: share of slides on which the threshold is reached.

    .. math:: \mathrm{Reach}(\kappa) = |S|^{-1} \sum_{s \in S} \mathbf{1}[\mathrm{MSK}_s(\kappa)\
       \text{exists}]

    >>> reach([3, None, 1, 8])
    0.75
    """
    return float(np.mean(reached(inputs.counts(msks))))


@card(
    title="Conditional MSK",
    symbol=r"\mathrm{MSK}_\mathrm{cond}",
    direction="lower",
    range=(1, math.inf),
    needs="MSK of every slide, None where it does not exist",
    does_not_show="anything about slides that never reach: failing on hard slides lowers it",
    source="the paper, Sequential Reveal Protocol",
)
def msk_cond(msks: Counts) -> float:
    r"""Mean MSK over the slides that reach; NaN if none does.

    .. math:: \mathrm{MSK}_\mathrm{cond} = |R|^{-1} \sum_{s \in R} \mathrm{MSK}_s, \quad R = \{s :
       \mathrm{MSK}_s\ \text{exists}\}

    Read it beside :func:`reach` and :func:`foci.metrics.restricted_mean`.

    >>> msk_cond([3, None, 1, 8])
    4.0
    """
    values = inputs.counts(msks)
    known = values[reached(values)]
    return float(known.mean()) if known.size else math.nan


@card(
    title="Area under the K-curve",
    symbol=r"\mathrm{AUKC}",
    direction="higher",
    range=(0.0, 1.0),
    needs="one insertion curve and the number of candidate tiles",
    does_not_show="how many tiles are enough; N cancels, so only the last count sets the scale",
    source="the paper, Sequential Reveal Protocol",
)
def aukc(probs: ArrayLike, ks: ArrayLike, n_tiles: SupportsIndex, target: SupportsIndex) -> float:
    r"""Area under the K-curve: the target's probability over the revealed fraction of one slide.

    .. math:: \frac{1}{\rho_m} \sum_{j=1}^{m-1} \frac{p_y(K_j) + p_y(K_{j+1})}{2}(\rho_{j+1} -
       \rho_j), \quad \rho_j = K_j / N

    The sum starts at the first reveal step, so a curve that is 1 throughout gives
    :math:`(K_m - K_1) / K_m`, 255/256 for the paper's counts. A bag with a single step gets its
    only probability. The cohort's AUKC is the mean over slides.

    >>> aukc([[0.5, 0.5], [0.2, 0.8], [0.2, 0.8]], ks=[1, 2, 4], n_tiles=10, target=1)
    0.5625
    """
    curve, counts, aim = inputs.curve(probs, ks, target)
    inputs.up_to(counts, n_tiles, "n_tiles")
    return float(area_over_counts(followed(curve, aim).confidence, counts))  # N cancels


def stable_from(steps: Marks, ks: Integers) -> Floats:
    """Count from which every row of ``[..., K]`` stays marked; NaN if it ends unmarked."""
    n_last = np.logical_and.accumulate(steps[..., ::-1], axis=-1).sum(axis=-1)
    return np.where(n_last > 0, ks[np.minimum(len(ks) - n_last, len(ks) - 1)], np.nan)


@card(
    title="Stable MSK",
    symbol=r"\mathrm{MSK}^{\mathrm{stable}}_s(\kappa)",
    direction="lower",
    range=(1, math.inf),
    needs="one insertion curve up to K_max with the probabilities of all classes",
    does_not_show="what happens beyond the last count that was revealed",
    source="FOCI; the paper reports the first crossing only",
)
def stable_msk(
    probs: ArrayLike, ks: ArrayLike, target: SupportsIndex, kappa: float = 0.9
) -> int | None:
    r"""Smallest count from which the condition of MSK holds up to the end of the curve.

    .. math:: \min\{K : \forall K' \ge K,\ \arg\max_c p_c(K') = y \wedge p_y(K') \ge \kappa\}

    >>> curve = [[0.05, 0.95], [0.5, 0.5], [0.1, 0.9]]  # crosses, falls back, crosses again
    >>> stable_msk(curve, ks=[1, 2, 3], target=1)
    3
    """
    curve, counts, aim = inputs.curve(probs, ks, target)
    steps = followed(curve, aim).sure(inputs.threshold(kappa))
    return count_or_none(stable_from(steps, counts))


@card(
    title="Share that falls back",
    symbol=r"\mathrm{Fallback}(\kappa)",
    direction="lower",
    range=(0.0, 1.0),
    needs="MSK and stable MSK of every slide",
    does_not_show="for how many counts, or how far, the confidence falls",
)
def fallback_share(msks: Counts, stable_msks: Counts) -> float:
    r"""Share of the slides that cross the threshold and later fall below it; NaN if none crosses.

    .. math:: |R|^{-1} \sum_{s \in R} \mathbf{1}[\mathrm{MSK}^{\mathrm{stable}}_s \ne
       \mathrm{MSK}_s], \quad R = \{s : \mathrm{MSK}_s\ \text{exists}\}

    >>> fallback_share(msks=[1, 2, None, 4], stable_msks=[1, 7, None, None])
    0.6666666666666666
    """
    first, stable = inputs.two_counts(msks=msks, stable_msks=stable_msks)
    crossed = reached(first)
    possible = np.isnan(stable) | (stable >= first)
    what, fix = "holds a count before the first crossing", "compute both from the same curves"
    inputs.require(possible.all(), "stable_msks", what, fix)
    return float(np.mean(stable[crossed] != first[crossed])) if crossed.any() else math.nan


def predicted_class(full: ArrayLike) -> int:
    r"""Predicted class of the full bag, :math:`\hat y = \arg\max_c p_c(\text{full bag})`.

    Used as ``target`` it asks whether a subset recovers what the model *says*; the label asks
    whether it recovers what is *true*.

    >>> predicted_class([0.2, 0.5, 0.3])
    1
    """
    return int(inputs.full_bag(full).argmax())


def runner_up(full: ArrayLike, target: SupportsIndex) -> int:
    """Most probable class of the full bag other than the target; the lower index on a tie.

    >>> runner_up([0.2, 0.5, 0.3], target=1)
    2
    """
    probs = inputs.full_bag(full)
    return int(runners_up(probs, inputs.class_index(target, len(probs))))


def runners_up(full: Floats, target: int | Integers) -> Integers:
    """:func:`runner_up` of every row of ``[..., C]``."""
    own = np.arange(full.shape[-1]) == np.asarray(target)[..., None]
    rivals: Integers = np.where(own, -1.0, full).argmax(axis=-1)
    return rivals


def truncate(probs: ArrayLike, ks: ArrayLike, k_max: SupportsIndex) -> tuple[Floats, Integers]:
    """Cut a curve at ``k_max`` tiles (the paper's equal-budget table uses 32).

    >>> probs, ks = truncate([[0.6, 0.4], [0.3, 0.7], [0.1, 0.9]], ks=[1, 16, 64], k_max=32)
    >>> ks.tolist()
    [1, 16]
    """
    curve, counts, _ = inputs.curve(probs, ks, 0)
    within = counts <= inputs.as_int(k_max, "k_max")
    what = f"is {k_max}, below the first count {counts[0]}"
    inputs.require(within.any(), "k_max", what, "raise k_max")
    return curve[within], counts[within]


@dataclass(frozen=True)
class Specificity:
    """MSK of the target and of its strongest rival on the same curve."""

    target_msk: int | None
    rival_msk: int | None
    rival: int

    @property
    def specific(self) -> bool:
        """The target is reached, and reached before its rival."""
        if self.target_msk is None:
            return False
        return self.rival_msk is None or self.target_msk < self.rival_msk


@card(
    title="Specificity",
    symbol=r"\mathrm{MSK}^{y},\ \mathrm{MSK}^{c^*}",
    direction="none",
    range=(0.0, math.inf),
    needs="one insertion curve and the full-bag probabilities",
    does_not_show="which tiles speak for the rival",
)
def specificity(
    probs: ArrayLike, ks: ArrayLike, target: SupportsIndex, full: ArrayLike, kappa: float = 0.9
) -> Specificity:
    r"""MSK for the target against MSK for the strongest other class of the full bag.

    .. math:: \mathrm{MSK}^{y}\ \text{against}\ \mathrm{MSK}^{c^*}, \quad c^* = \arg\max_{c \ne y}
       p_c(\text{full})

    If the top tiles pass through certainty of the rival first, a small MSK is no evidence for the
    target.

    >>> result = specificity([[0.95, 0.05], [0.1, 0.9]], [1, 2], target=1, full=[0.2, 0.8])
    >>> result.target_msk, result.rival_msk, result.specific
    (2, 1, False)
    """
    curve, _, _ = inputs.curve(probs, ks, target)
    rival = runner_up(inputs.full_bag(full, curve.shape[1]), target)
    return Specificity(msk(curve, ks, target, kappa), msk(curve, ks, rival, kappa), rival)


@card(
    title="Specific share",
    symbol=r"\mathrm{Spec}(\kappa)",
    direction="higher",
    range=(0.0, 1.0),
    needs="specificity of every slide",
    does_not_show="whether the target was reached with few tiles",
)
def specific_share(slides: Sequence[Specificity]) -> float:
    r"""Share of slides on which the target is reached, and reached before its rival.

    .. math:: |S|^{-1} \sum_s \mathbf{1}[\mathrm{MSK}_s^{y} < \mathrm{MSK}_s^{c^*}], \quad \text{an
       unreached MSK being } \infty

    >>> specific_share([Specificity(1, None, 0), Specificity(3, 2, 0)])
    0.5
    """
    inputs.same_length(slides=slides)
    return float(np.mean([slide.specific for slide in slides]))


def restricted(msks: Counts, k_max: SupportsIndex | ArrayLike = 256) -> Floats:
    """Per slide ``min(MSK, K_max)``; K_max where the slide does not reach.

    The paper censors every slide at K_max, also a bag with fewer tiles. An audit's view of decided
    slides censors each slide at min(K_max, N), because it cannot need more tiles than it has: then
    ``k_max`` is one count per slide.

    >>> restricted([3, None, 300], k_max=256).tolist()
    [3.0, 256.0, 256.0]
    >>> restricted([3, None, 300], k_max=[256, 40, 256]).tolist()
    [3.0, 40.0, 256.0]
    """
    values = inputs.counts(msks)
    return np.fmin(values, _censoring_counts(k_max, len(values)))


def _censoring_counts(k_max: Any, n_slides: int) -> Floats:
    """One count per slide at which it is censored."""
    if np.ndim(k_max) == 0:
        return np.full(n_slides, float(inputs.as_int(k_max, "k_max")))
    counts = inputs.as_counts(k_max, "k_max")
    what = f"has {counts.size} counts for {n_slides} slides"
    inputs.require(counts.size == n_slides, "k_max", what, "pass one count, or one per slide")
    return counts.astype(np.float64)


@card(
    title="Restricted mean K",
    symbol=r"\mathrm{RMK}(K_{\max})",
    direction="lower",
    range=(1, math.inf),
    needs="MSK of every slide, None where it does not exist, and K_max (or one count per slide)",
    does_not_show="whether a high value comes from many slow slides or few that never reach",
    source="FOCI; the restricted mean survival time of the Kaplan-Meier curve",
)
def restricted_mean(msks: Counts, k_max: SupportsIndex | ArrayLike = 256) -> float:
    r"""Mean number of tiles over *all* slides; a slide that never reaches counts as K_max.

    .. math:: \mathrm{RMK}(K_{\max}) = |S|^{-1} \sum_{s \in S} \min(\mathrm{MSK}_s, K_{\max})

    Unlike :func:`foci.metrics.msk_cond` it cannot be lowered by failing on hard slides. With one
    count per slide, :math:`K_{\max}` is the slide's own :math:`\min(K_{\max}, N_s)`.

    >>> restricted_mean([2, None, 6], k_max=256)
    88.0
    >>> restricted_mean([2, None, 6], k_max=[256, 40, 256])
    16.0
    """
    return float(restricted(msks, k_max).mean())


@dataclass(frozen=True)
class KaplanMeier:
    """Share of slides that still need more than k tiles: a right-continuous step function.

    It steps down at ``ks``, from 0 on, has the value ``survival`` from each of them up to the next,
    and ends at the count, or the largest count, at which slides are censored.
    """

    ks: Floats
    survival: Floats
    k_max: int

    @property
    def area(self) -> float:
        """Area up to K_max: the restricted mean, where all slides are censored at one count."""
        return float(np.dot(self.survival, np.diff(self.ks, append=self.k_max)))

    @property
    def median(self) -> float | None:
        """Tiles after which at least half of the slides have reached; None if they never do."""
        half = self.survival <= 0.5
        return float(self.ks[half.argmax()]) if half.any() else None


@card(
    title="Kaplan-Meier curve over K",
    symbol=r"S(k)",
    direction="lower",
    range=(0.0, math.inf),
    needs="MSK of every slide, None where it does not exist, and K_max",
    does_not_show="what a censored slide would need",
    source="Kaplan and Meier, 1958, over tile counts",
)
def kaplan_meier(msks: Counts, k_max: SupportsIndex | ArrayLike = 256) -> KaplanMeier:
    r"""Share of slides that need more than k tiles, censored at K_max.

    .. math:: S(k) = \prod_{k_i \le k} (1 - d_i / n_i)

    with :math:`d_i` slides reaching at :math:`k_i` of the :math:`n_i` still open; a slide censored
    at :math:`k_i` is still open there. Where all slides are censored at one count the product is
    the share of slides still open, and is computed as that share, without the rounding of the
    products in :func:`scipy.stats.ecdf`. With one count per slide, a censored slide is taken to go
    on as those still open do, so that the area is at least :func:`restricted_mean`. Arguments as in
    :func:`restricted`.

    >>> curve = kaplan_meier([1, 1, 4, None], k_max=8)
    >>> curve.ks.tolist(), curve.survival.tolist()
    ([0.0, 1.0, 4.0], [1.0, 0.5, 0.25])
    >>> curve.area, curve.median
    (3.5, 1.0)
    >>> kaplan_meier([1, 1, 4, None], k_max=[8, 8, 8, 2]).survival.tolist()
    [1.0, 0.5, 0.0]
    """
    values = inputs.counts(msks)
    ends = _censoring_counts(k_max, values.size)
    steps, reached = np.unique(values[values <= ends], return_counts=True)
    if (ends == ends[0]).all():
        survival = (values.size - np.cumsum(reached)) / values.size
    else:
        times = np.sort(np.fmin(values, ends))
        at_risk = values.size - np.searchsorted(times, steps, side="left")
        survival = np.multiply.accumulate(1 - reached / at_risk)
    return KaplanMeier(
        ks=np.concatenate([[0.0], steps]),
        survival=np.concatenate([[1.0], survival]),
        k_max=int(ends.max()),
    )


# The same over a whole cohort


@dataclass(frozen=True, eq=False)
class Stack:
    """Slides whose curves were measured at the same counts, so that nothing is padded.

    Attributes:
        rows: ``[B]`` positions of these slides in the cohort.
        ks: ``[K]`` their counts.
        probs: ``[B, K, C]`` class probabilities.
    """

    rows: Integers
    ks: Integers
    probs: Floats


def stack(
    probs: Sequence[ArrayLike], ks: Sequence[ArrayLike], *, lowest: int = 1
) -> tuple[Stack, ...]:
    """Stack the curves that share their counts; a curve without any count is in no stack.

    Every slide has an array of counts and one of probabilities, ``[len(ks), C]``. ``lowest`` is the
    smallest count allowed: 1 for insertion, 0 for deletion.

    >>> one, two = [[0.5, 0.5]], [[0.5, 0.5], [0.1, 0.9]]
    >>> [s.rows.tolist() for s in stack([two, one, two], [[1, 2], [1], [1, 2]])]
    [[0, 2], [1]]
    """
    inputs.same_length(probs=probs, ks=ks)
    alike: dict[tuple[str, bytes], list[int]] = {}
    for row, measured in enumerate(ks):
        counts = np.asarray(measured)
        alike.setdefault((counts.dtype.char, counts.tobytes()), []).append(row)
    stacks = []
    for rows in alike.values():
        counts = np.asarray(ks[rows[0]])
        for start in range(0, len(rows) if counts.size else 0, BLOCK):
            block = rows[start : start + BLOCK]
            try:
                table = inputs.probabilities([np.asarray(probs[row]) for row in block], ndim=3)
                shared = inputs.increasing(counts, table.shape[1], lowest=lowest)
            except (FociError, TypeError, ValueError, RuntimeError):
                for row in block:  # say which curve it is
                    with inputs.located(f"curve {row}, "):
                        inputs.curve(probs[row], counts, 0, lowest=lowest)
                raise
            stacks.append(Stack(np.array(block), shared, table))
    return tuple(stacks)


@dataclass(frozen=True, eq=False)
class OperatingPoints:
    """MSK, stable MSK and AUKC of every slide under one ranking, ``[S]`` each; NaN if not reached.

    ``specific`` is 1 where the target is reached before its rival, else 0.
    """

    msk: Floats
    stable: Floats
    aukc: Floats
    specific: Floats


def operating_points(
    stacks: Sequence[Stack],
    full: ArrayLike,
    targets: ArrayLike,
    kappa: float | ArrayLike = 0.9,
) -> OperatingPoints:
    """MSK, stable MSK, AUKC and specificity of every slide of a cohort.

    From the insertion curves of the S slides, their full-bag probabilities ``[S, C]``, the class
    followed on each, ``[S]``, and the operating confidence, one for all slides or one per slide.

    >>> curves = stack([[[0.6, 0.4], [0.05, 0.95]], [[0.5, 0.5]]], [[1, 2], [1]])
    >>> operating_points(curves, full=[[0.1, 0.9], [0.5, 0.5]], targets=[1, 1]).msk
    array([ 2., nan])
    """
    full_probs, aims = inputs.full_bags(full, targets)
    needed = inputs.thresholds(kappa, len(aims))
    found = np.full((4, len(aims)), np.nan)
    for part in stacks:
        rivals = runners_up(full_probs[part.rows], aims[part.rows])
        seen, rival = (followed(part.probs, own) for own in (aims[part.rows], rivals))
        found[:, part.rows] = points_of(seen, rival, part.ks, needed[part.rows, None])
    return OperatingPoints(*found)


def points_of(
    seen: Followed, rival: Followed, ks: Integers, kappa: float | Floats
) -> tuple[Floats, Floats, Floats, Marks]:
    """The four numbers of :class:`OperatingPoints` on curves ``[S, K]``, seen from two classes."""
    steps = seen.sure(kappa)
    count, rival_count = first_crossing(steps, ks), first_crossing(rival.sure(kappa), ks)
    first = reached(count) & ~(rival_count <= count)  # NaN is never reached
    return count, stable_from(steps, ks), area_over_counts(seen.confidence, ks), first


def known_at(counts: Integers, ks: Integers, values: NDArray[Any]) -> Floats:
    """``[S, K]`` values of curves at other counts; NaN where a count was not measured.

    Counts are ``[K]``, or ``[S, K]`` where each curve has its own.
    """
    steps = np.minimum(np.searchsorted(ks, counts), len(ks) - 1)
    found = np.take_along_axis(values, np.broadcast_to(steps, (len(values), steps.shape[-1])), 1)
    return np.where(ks[steps] == counts, found, np.nan)


def followed_at(stacks: Sequence[Stack], targets: Integers, counts: Integers) -> Followed:
    """What the curves of ``[S]`` slides say of their targets at the same counts, ``[S, K]``."""
    confidence = np.full((len(targets), len(counts)), np.nan)
    kept = np.zeros(confidence.shape, dtype=np.bool_)
    for part in stacks:
        seen = followed(part.probs, targets[part.rows])
        _, at, steps = np.intersect1d(counts, part.ks, assume_unique=True, return_indices=True)
        known = np.ix_(part.rows, at)
        confidence[known], kept[known] = seen.confidence[:, steps], seen.kept[:, steps]
    return Followed(confidence, kept)
