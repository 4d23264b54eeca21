"""Typed records of an audit folder: the parts of its manifest, and all of ``summary.json``.

Report, tables and terminal show the numbers and answers of :class:`Summary` and no others.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from foci.audits.settings import View
from foci.metrics import (
    CountQuantile,
    already_minimal,
    compare_areas,
    compare_orders,
    geometric_mean_ratio,
    quantiles_with_missing,
)
from foci.metrics.answers import AxisEvidence, Belief, BetterOrder
from foci.metrics.compare import AxisResult
from foci.metrics.inputs import Floats, Marks, defined_mean
from foci.outputs import Output
from foci.words import counted


class Record(BaseModel):
    """Frozen pydantic model, also of an object with these attributes; others are ignored."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        from_attributes=True,
        json_schema_serialization_defaults_required=True,
    )


def plain(value: Any) -> Any:
    """Convert NumPy arrays and scalars to Python values; NaN and infinity become None.

    >>> plain(np.array([1.0, np.nan])), plain(float("inf")), plain(3)
    ([1.0, None], None, 3)
    """
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


Number = Annotated[float | None, BeforeValidator(plain)]
"""A float; None where it is not defined."""

Defined = Annotated[float, BeforeValidator(plain)]
"""A float that is always defined."""

Numbers = Annotated[list[float | None], BeforeValidator(plain)]
"""A list of floats; None where one is not defined."""

Counts = Annotated[list[int], BeforeValidator(plain)]
"""A list of whole numbers."""


AlarmKind = Literal[
    "class order",
    "other encoder",
    "mixed encoders",
    "feature scale",
    "below chance",
    "below test figure",
    "constant answer",
    "single class",
    "training slides",
    "patient overlap",
    "patient spelling",
    "duplicate bags",
    "zero tiles",
    "repeated tiles",
    "coordinate order",
]
"""What an alarm is about, in the order in which alarms are listed."""


class Alarm(Record):
    """A reason why the numbers of an audit may not mean what they seem to mean.

    Attributes:
        numbers: The figures behind it, by name.
        slides: The slides concerned, where it is about some of them.
    """

    kind: AlarmKind
    sentence: str
    numbers: dict[str, float] = Field(default_factory=dict)
    slides: list[str] = Field(default_factory=list)


class Interval(Record):
    """An estimate with its bootstrap interval over patients; None where it is not defined."""

    estimate: Number
    low: Number
    high: Number


class Mean(Interval):
    """A mean over all slides, always defined; its interval needs two patients and two draws."""

    estimate: Defined


MIN_GAIN, MIN_SHARE_GAIN = 0.1, 0.05
"""Relative number of tiles, and share of slides, from which a difference has a size."""

Axis = Literal["sufficiency", "necessity"]
Measure = Literal["MSK", "decisive K", "deletion area"]


class AxisComparison(Record):
    """One ranking against another on one axis, slide by slide.

    Attributes:
        axis: Sufficiency (do the first tiles suffice?) or necessity (does the decision hang on
            them?).
        d: Mean over patients of the share of their slides on which the first ranking needs fewer
            tiles, minus the share on which it needs more.
        low: Lower end of its interval over patients; None where there is one patient or one draw.
        pvalue: Of the sign-flip test over patients.
        wins, losses: Slides on which the first, or the second, ranking is ahead.
        case_wins, case_losses: Patients, likewise.
        result: The first ranking is better, worse, the same, or it is unclear.
        informative: False where the second ranking already needs one tile on half of the slides:
            the first cannot be better there.
        first, second: Median count (area) of each ranking; None where half of the slides have none.
        first_share, second_share: Share of the slides that have a count.
        ratio: Geometric mean of the first's counts over the second's, on the ``n_ratio`` slides
            that have both; of areas, the ratio of the means.
    """

    axis: Axis
    measure: Measure
    d: Defined
    low: Number
    high: Number
    pvalue: Defined
    n_slides: int
    n_cases: int
    wins: int
    losses: int
    case_wins: int
    case_losses: int
    result: AxisResult
    informative: bool = True
    first: Number = None
    second: Number = None
    first_share: Number = None
    second_share: Number = None
    ratio: Number = None
    n_ratio: int = 0

    @property
    def n_differ(self) -> int:
        """Patients on whose slides the rankings differ."""
        return self.case_wins + self.case_losses

    @property
    def ties(self) -> int:
        """Slides on which neither ranking is ahead."""
        return self.n_slides - self.wins - self.losses

    @property
    def sized(self) -> bool:
        """Whether the first ranking is ahead by a size that matters.

        It needs at least a tenth fewer tiles (loses a tenth more), or finds its tiles on at least
        5 % more of the slides.
        """
        if self.ratio is not None:
            if self.measure == "deletion area":
                return self.ratio >= 1 + MIN_GAIN
            if self.ratio <= 1 - MIN_GAIN:
                return True
        return (self.first_share or 0.0) - (self.second_share or 0.0) >= MIN_SHARE_GAIN

    @property
    def evidence(self) -> AxisEvidence:
        """What the rules behind the answers read."""
        high = math.inf if self.high is None else self.high
        return AxisEvidence(self.result, self.d, high, self.informative, self.sized)

    @classmethod
    def of(
        cls,
        axis: Axis,
        measure: Measure,
        a: ArrayLike,
        b: ArrayLike,
        cases: Sequence[str],
        **how: Any,
    ) -> AxisComparison:
        """Compare counts, or areas, ``[R, S]`` of two rankings on the slides of ``cases``.

        Slides without an area are left out; without any left, nothing is known (``n_slides`` is 0).
        """
        one, two = (np.atleast_2d(np.asarray(values, dtype=np.float64)) for values in (a, b))
        tables = one, two
        if measure == "deletion area":
            found = compare_areas(one, two, cases, **how)
            kept = ~(np.isnan(one).any(axis=0) | np.isnan(two).any(axis=0))
            first, second = (table[:, kept].mean(axis=0) for table in tables)
            base = float(second.mean()) if len(second) else math.nan
            ratio, n_ratio = float(first.mean()) / base if base > 0 else None, len(second)
            shares: list[float | None] = [None, None]
        else:
            found = compare_orders(one, two, cases, **how)
            first, second = (np.nan_to_num(table, nan=np.inf).ravel() for table in tables)
            # over the orders, too: the mean of ten counts lies above that of their logarithms
            own = geometric_mean_ratio(*(np.exp(defined_mean(np.log(t), axis=0)) for t in tables))
            ratio, n_ratio = own.ratio, own.n
            shares = [float((~np.isnan(table)).mean()) for table in tables]
        return cls(
            axis=axis,
            measure=measure,
            **vars(found) | ({} if found.n_slides else {"d": 0.0}),
            informative=measure != "MSK" or not already_minimal(two),
            first=float(np.median(first)) if len(first) else None,
            second=float(np.median(second)) if len(second) else None,
            first_share=shares[0],
            second_share=shares[1],
            ratio=ratio,
            n_ratio=n_ratio,
        )  # fmt: skip


class ReadoutRow(Record):
    """One ranking on the validation slides, beside ``evidence``.

    Attributes:
        decisive: Median decisive K; None where it is infinite.
        share: Share of the slides with a decisive set.
        fewer: Slides with a smaller decisive set than under evidence.
        more: Slides with a larger one, or with none where evidence has one.
        d: Mean of +1 and -1 over the slides.
        d_sufficiency: The same for MSK.
        area: Mean deletion area.
    """

    ranking: str
    decisive: Number
    share: Defined
    fewer: int
    more: int
    d: Number
    low: Number
    high: Number
    d_sufficiency: Number
    area: Defined


class Readout(Record):
    """Which ranking answers "which tiles?", and how the validation slides chose it.

    Attributes:
        comparisons: The selector against evidence, in the order in which the rule asks.
    """

    chosen: str
    rule: str
    n_slides: int
    n_cases: int
    rows: list[ReadoutRow]
    comparisons: list[AxisComparison]

    @property
    def slides_in_words(self) -> str:
        """How many slides chose, and of how many patients."""
        slides = counted(self.n_slides, "decided validation slide")
        return f"{slides} of {counted(self.n_cases, 'patient')}"


class CountQuartiles(Record):
    """Quartiles of tile counts over slides; missing counts are infinite."""

    low: CountQuantile
    median: CountQuantile
    high: CountQuantile

    @classmethod
    def over(cls, counts: Floats, longer: Marks) -> CountQuartiles | None:
        """Quartiles over all slides and seeds; a missing count is censored where tiles remain."""
        flat = counts.ravel()
        if not len(flat):
            return None
        low, median, high = quantiles_with_missing(flat, longer.ravel() & np.isnan(flat))
        return cls(low=low, median=median, high=high)


class ClassNumbers(Record):
    """One ranking on the decided slides of one predicted class.

    Attributes:
        decisive: Quartiles of decisive K; None where it was not measured.
        decisive_share: Share of these slides of two or more tiles that have one.
    """

    n_slides: int
    msk: CountQuartiles | None
    decisive: CountQuartiles | None
    decisive_share: Number


class DecidedNumbers(Record):
    """One ranking on the slides that the model has decided, and on the others.

    Counts are censored at ``min(K_max, N)`` of each slide.

    Attributes:
        msk: Quartiles of MSK; a slide that never reaches counts as infinite.
        stable: The same for the stable MSK.
        restricted: Mean MSK; ``min(K_max, N)`` where a slide never reaches.
        fallback: Share of reaching slides that fall back below kappa later.
        decisive: Quartiles of decisive K (the decision flips); None where it was not measured.
        decisive_share: Share of the decided slides of two or more tiles that have one.
        deciding: Median decisive K of the slides that have one.
        decisive_paper: Quartiles in the paper's form (at most 0.2 of the probability is left).
        decisive_paper_share: Share of slides that have one in that form.
        flips_back: Share of slides with a decisive K on which the decision comes back later.
        exact: Whether every count was tried; otherwise decisive K is an upper bound.
        efficiency: Mean of K*/K, the proven minimum (or a lower bound of it) over decisive K; 0 on
            a slide without decisive K. None where no slide has a K*.
        efficiency_n: Decided slides that it runs over: those with a K* of at most K_max.
        efficiency_beyond: Decided slides that it leaves out because their K* is above K_max.
        excess, excess_max: Mean and largest number of tiles of a decisive set beyond K*, on the
            slides that have both.
        relative: Quartiles of MSK at 0.95 of the full bag's own confidence, over *all* slides.
        undecided_crosses: Share of the undecided slides on which the ranking crosses kappa.
        undecided_overshoot: On those, mean confidence gained over the whole slide.
    """

    n_slides: int
    msk: CountQuartiles | None
    stable: CountQuartiles | None
    restricted: Mean | None
    fallback: Number
    decisive: CountQuartiles | None
    decisive_share: Number
    deciding: Number
    decisive_paper: CountQuartiles | None
    decisive_paper_share: Number
    flips_back: Number
    exact: bool
    efficiency: Interval | None = None
    efficiency_n: int = 0
    efficiency_beyond: int = 0
    excess: Number = None
    excess_max: Number = None
    relative: CountQuartiles | None
    undecided_crosses: Number
    undecided_overshoot: Number
    per_class: dict[str, ClassNumbers] = Field(default_factory=dict)


class OverCounts(Record):
    """Values over counts of tiles, as many as there are counts."""

    ks: Counts

    @model_validator(mode="after")
    def _check_lengths(self) -> Self:
        for name in type(self).model_fields:
            if len(getattr(self, name)) != len(self.ks):
                raise ValueError(f"{name} has another length than ks")
        return self


class MeanDrops(OverCounts):
    """Mean drop of the target's probability after deleting the first K tiles.

    It runs over the ``n_slides`` slides that have more than K tiles; ``low`` and ``high`` are the
    ends of the intervals over patients.
    """

    mean: Numbers
    n_slides: Counts
    low: Numbers
    high: Numbers


class Survival(OverCounts):
    """Kaplan-Meier curve over K: the share of slides that need more than K tiles."""

    survival: list[float]
    low: Numbers
    high: Numbers


class CurveBand(OverCounts):
    """Mean reveal curve over the slides, with a band.

    The band holds the quartiles over slides; for random orders, the smallest and the largest mean.
    """

    mean: Numbers
    low: Numbers
    high: Numbers


class SelectedOnly(Record):
    """AUC when only the first ``k`` tiles, or the adaptive number of tiles, are kept.

    Attributes:
        adaptive_auc: With max(16, 3 % of N) tiles.
        n_whole: Slides of which ``k`` tiles are the whole bag.
    """

    k: int
    auc: Number
    adaptive_auc: Number
    n_whole: int
    n_slides: int


class Saving(Interval):
    """SHI computed from means over the seeds, with its interval, and the SHI of each seed."""

    seeds: Numbers


class Paired(Record):
    """Mean MSK of native (``base``) and this ranking (``foci``) on slides that both reach."""

    base: Number
    foci: Number
    n_both: int
    n_base_only: int
    n_foci_only: int
    n_neither: int


class SignedRankTest(Record):
    """Wilcoxon signed-rank test against native on restricted counts, one pair per patient."""

    statistic: Number
    pvalue: Number
    n_pairs: int


class CountsBehind(Record):
    """Which counts the numbers of a ranking rest on: every one (dense), or a grid.

    Attributes:
        insertion: ``"dense"`` if every count up to K_max was revealed on every slide.
        deletion: ``"dense"`` if every count was deleted; ``"none"`` if no tile was.
        n_deleted: Seeds or random orders whose tiles were deleted.
        n_bounds: Slides (and seeds) whose MSK is an upper bound: a count below was left out.
        aukc_error: Mean over the slides of the bound on the error of their area; 0 if dense.
        aukc_error_max: The largest of them.
    """

    insertion: Literal["dense", "grid"]
    deletion: Literal["dense", "grid", "none"]
    n_deleted: int
    n_bounds: int
    aukc_error: Defined
    aukc_error_max: Defined


class NullControl(Record):
    """A ranking beside maps that know nothing, all against the same random orders.

    By the probability that the prediction loses without the first tiles.

    Attributes:
        ranking: The ranking.
        d: Its net share of slides against random orders.
        n_maps: Random directions in feature space, each a map.
        beaten: Maps whose net share is smaller.
        pvalue: One plus the maps that do as well or better, over one plus all maps.
        best: The largest net share of a map.
        n_slides, n_cases: Slides it rests on, and their patients.
        sampled: Whether only a sample of the slides was taken.
        references: Net share of other maps without content, by name; they have no vote.
    """

    ranking: str
    d: Defined
    n_maps: int
    beaten: int
    pvalue: Defined
    best: Defined
    n_slides: int
    n_cases: int
    sampled: bool
    references: dict[str, Number]


class RankingNumbers(Record):
    """All numbers of one ranking in one view.

    Attributes:
        msk_cond: Mean MSK over the slides that reach.
        restricted: Mean MSK over all slides; K_max where a slide never reaches.
        reach: Share of slides that reach.
        aukc: Area under the reveal curve.
        stable_restricted: Restricted mean of the stable MSK.
        fallback: Among slides that reach, the share that falls below kappa again later.
        specific: Share of slides on which the target comes before its rival.
        relevance_gain: Symmetric relevance gain, over the whole slide and without a threshold.
        median_k: Tiles after which half of the slides have reached; None if they never do.
        paired: Comparison with native on the slides that both reach.
        captured: Share of the saving of greedy search that this ranking captures.
        selected_only: AUC with only the first tiles kept; None without labels.
        decided: The same ranking over decided slides, with decisive K; prediction view only.
        null: The same ranking beside content-free maps; prediction view only.

    Fields that end in ``_seeds`` hold the value of every selector seed or random order.
    """

    msk_cond: Interval
    msk_cond_seeds: Numbers
    restricted: Mean
    restricted_seeds: Numbers
    reach: Mean
    reach_seeds: Numbers
    reach_correct: Number
    reach_wrong: Number
    aukc: Mean
    aukc_seeds: Numbers
    stable_restricted: Number
    fallback: Number
    specific: Number
    faithfulness: Interval
    faithfulness_seeds: Numbers
    relevance_gain: Interval
    relevance_gain_seeds: Numbers
    drops: MeanDrops
    km: Survival
    median_k: int | None
    mean_curve: CurveBand
    shi_native: Saving | None
    shi_random: Saving | None
    paired: Paired | None
    wilcoxon: SignedRankTest | None
    captured: Number
    selected_only: SelectedOnly | None
    decided: DecidedNumbers | None = None
    null: NullControl | None = None
    counts: CountsBehind


class PairAgreement(Record):
    """Mean agreement of two rankings over the slides: rank correlation and top-K overlap.

    ``chance8`` and ``chance32`` are the overlaps that two random orders of the same slides have.
    """

    first: str
    second: str
    spearman: Number
    jaccard8: Number
    jaccard32: Number
    chance8: Number = None
    chance32: Number = None


class RiskGroup(Record):
    """Slides on one side of a risk's cut, and how many live on after each event (Kaplan-Meier)."""

    name: str
    n_slides: int
    n_events: int
    last: float
    times: list[float]
    alive: list[float]


class FullBag(Record):
    """How well the model does on whole slides; None without labels, and for other outputs.

    AUC and accuracy of classes; Harrell's C of a risk, with the survival of both risk groups; R2
    and Spearman's correlation of a number; of labels their macro AUC, without those in
    ``left_out``, which all scored slides have, or none. AUC and accuracy are of the label followed.
    """

    auc: Number
    accuracy: Number
    c_index: Interval | None = None
    r_squared: Interval | None = None
    spearman: Interval | None = None
    macro_auc: Interval | None = None
    left_out: list[str] = []
    n_scored: int | None = None
    n_events: int | None = None
    risk_groups: list[RiskGroup] = []


class OrderComparison(Record):
    """The first ranking is judged against the second; an axis is None where it cannot be."""

    first: str
    second: str
    sufficiency: AxisComparison | None
    necessity: AxisComparison | None

    @property
    def axes(self) -> list[AxisComparison]:
        """The axes that could be compared."""
        return [axis for axis in (self.sufficiency, self.necessity) if axis is not None]

    @property
    def evidence(self) -> tuple[AxisEvidence | None, AxisEvidence | None]:
        """What the rules behind the answers read of sufficiency and necessity."""
        both = (self.sufficiency, self.necessity)
        sufficiency, necessity = (None if axis is None else axis.evidence for axis in both)
        return sufficiency, necessity


Question = Literal["map", "order"]


class MapAnswer(Record):
    """Can I believe the map? The map against random orders and against maps that know nothing.

    Attributes:
        ranking: Name of the map.
        only: Classes in which the map finds deciding tiles, if it does not in all of them.
        tied: Share of the slides on which most of the map's first tiles are tied; None if unknown.
        null: The map beside content-free maps; None where none were run.
    """

    answer: Belief
    sentences: list[str]
    ranking: str
    comparison: OrderComparison | None
    null: NullControl | None
    only: list[str]
    tied: Number


class TilesAnswer(Record):
    """How many tiles does the decision hang on? Decisive K under the ranking in use.

    Attributes:
        n_slides: Decided slides of two or more tiles.
        n_found: Those that have deciding tiles (with several seeds, on average).
        share: Share of them that do, with its interval.
        count: Median number of deciding tiles among those, with its interval.
        count_low, count_high: Its quartiles.
        of_slide: Median share of the slide's tiles that they are.
        without: Classes without decisive sets within K_max.
        proven_none: Slides of which it is proven that no set of tiles decides them; None where
            nothing is proven of any slide.
        minimum: Median proven minimum of deciding tiles over the slides that have one; None where
            it is not exact on every slide.
    """

    answer: str
    sentences: list[str]
    ranking: str
    n_slides: int
    n_found: Number
    share: Interval | None
    count: Interval | None
    count_low: Number
    count_high: Number
    of_slide: Number
    without: list[str]
    proven_none: int | None = None
    minimum: Number = None


class OrderAnswer(Record):
    """Is there a better order? The candidate against the map, and against random orders.

    Where the best order is proven, the map's efficiency answers, and no comparison.

    Attributes:
        efficiency: Of the map, by :class:`DecidedNumbers`, where the smallest deciding set of every
            decided slide is proven; None elsewhere.
        efficiency_n, efficiency_beyond: Slides that it runs over, and slides with a K* above K_max.
        null: The candidate beside content-free maps.
        evidence: ``evidence`` against the map, where it is not the candidate.
        selector: The trained selector against ``evidence``, where both were run.
    """

    answer: BetterOrder
    sentences: list[str]
    candidate: str | None
    against_native: OrderComparison | None
    against_random: OrderComparison | None
    null: NullControl | None
    evidence: OrderComparison | None
    selector: OrderComparison | None
    efficiency: Interval | None = None
    efficiency_n: int = 0
    efficiency_beyond: int = 0

    @property
    def short(self) -> str:
        """The answer, with the name of the map in the place of ``native``."""
        against = self.against_native
        return self.answer if against is None else self.answer.replace("native", against.second)


class AnswersAt(Record):
    """The answers at another threshold, each with its own decided slides."""

    kappa: float
    n_decided: int
    n_cases: int
    map: Belief
    order: BetterOrder


class AnswersAtShare(Record):
    """The answers at a share of each slide's own full-bag confidence, on all slides.

    Attributes:
        share: A tile set suffices where it gives this share of the full bag's probability.
        only: As in :class:`MapAnswer`.
    """

    share: float
    n_slides: int
    n_cases: int
    map: Belief
    only: list[str]
    order: BetterOrder
    ranking: str
    msk: CountQuartiles | None
    decisive: CountQuartiles | None


class Answers(Record):
    """The three answers of an audit, all in the prediction view over decided slides.

    Attributes:
        n_decided: Those of which the model itself is at least kappa sure.
        sensitivity: The same at other thresholds.
        sensitive: Questions with two different conclusive answers among the thresholds.
        relative: The same relative to each slide's own confidence, where it was asked for or
            fewer than 70 % of the slides are decided.
    """

    n_slides: int
    n_decided: int
    n_cases: int
    map: MapAnswer
    tiles: TilesAnswer
    order: OrderAnswer
    sensitivity: list[AnswersAt]
    sensitive: list[Question]
    relative: list[AnswersAtShare] = Field(default_factory=list)

    @property
    def comparisons(self) -> list[OrderComparison]:
        """Every comparison of two rankings that the answers rest on, each once."""
        order = self.order
        found = (
            self.map.comparison, order.against_native, order.against_random, order.evidence,
            order.selector,
        )  # fmt: skip
        return [one for one in found if one is not None]

    @property
    def in_short(self) -> dict[str, str]:
        """The answers by question, in a few words."""
        return {"map": self.map.answer, "tiles": self.tiles.answer, "order": self.order.short}


class Localised(Interval):
    """Mean over slides of a number that compares a ranking with the truth.

    Attributes:
        chance: What a random order of the same tiles has on average, on the same slides.
        n_slides: Slides on which it is defined.
    """

    chance: Number
    n_slides: int


class SlideCorrelation(Interval):
    """Rank correlation over slides, with its interval over patients."""

    n_slides: int


class RankingTruth(Record):
    """One ranking against the truth.

    Attributes:
        precision8: Share of true tiles among the first 8; all tiles where there are fewer.
        froc: Share of the true regions found before more than so many tiles outside, one number
            per count of :attr:`TruthRecord.false_tiles`; empty without coordinates.
        deciding: Share of the deciding tiles (decisive K) that are true, over slides that have any.
        count_correlation: Of decisive K with the number of true tiles. Large slides have more of
            both, so read :attr:`share_correlation` beside it.
        share_correlation: Of decisive K with the number of true tiles, both over the slide's tiles.
    """

    average_precision: Localised
    precision8: Localised
    precision32: Localised
    froc: list[Localised]
    deciding: Localised | None = None
    count_correlation: SlideCorrelation | None = None
    share_correlation: SlideCorrelation | None = None


class TruthRecord(Record):
    """Comparison of the rankings with annotated tiles.

    Attributes:
        what: What was marked, and by whom.
        n_slides: Slides with a true tile: all numbers are over these.
        n_cases: Their patients.
        n_unmarked: Audited slides without an annotation, left out.
        n_without: Annotated slides without a true tile, left out.
        n_tiles: Tiles that were judged on these slides.
        n_unknown: Their tiles on which nobody has decided, left out.
        false_tiles: Counts of tiles outside at which FROC is read.
        rankings: By column: the ranking with its seed.
    """

    what: str
    n_slides: int
    n_cases: int
    n_unmarked: int = 0
    n_without: int = 0
    n_tiles: int
    n_unknown: int = 0
    false_tiles: list[int]
    rankings: dict[str, RankingTruth]

    @property
    def precision8(self) -> dict[str, float | None]:
        """Share of true tiles among the first 8, by column."""
        return {name: own.precision8.estimate for name, own in self.rankings.items()}

    @property
    def average_precision(self) -> dict[str, float | None]:
        """By column."""
        return {name: own.average_precision.estimate for name, own in self.rankings.items()}

    @property
    def chance(self) -> float | None:
        """Share of true tiles: the mean precision of a random order."""
        return next((own.precision8.chance for own in self.rankings.values()), None)


class CarriedLine(Record):
    """Share of slides carried at every count of :class:`Carried`, with its band over patients."""

    share: list[float]
    low: Numbers
    high: Numbers

    def at(self, ks: Sequence[int], k: int) -> float:
        """Share at the largest known count up to K; 0 before the first."""
        known = [share for count, share in zip(ks, self.share, strict=True) if count <= k]
        return known[-1] if known else 0.0


class Carried(Record):
    """Share of slides whose decision the first K tiles carry, over slides the model is sure of.

    Attributes:
        ks: Counts, from 1 to K_max.
        n_slides, n_cases: Sure slides of two or more tiles, and their patients.
        relative: None; or the share of the full bag's own confidence that counts as sure, on all
            slides, where too few slides are sure at the audit's own threshold.
        map: The ranking that is judged.
        best: The best order found; None where the map itself is in use.
        typical: First count at which the best order (or the map) carries half of the slides.
        lines: By ranking: the map, the best order, random.
        minimum: The same of the proven minimum (or of a lower bound): no order can lie above it.
            None where it is not known for every slide.
    """

    ks: Counts
    n_slides: int
    n_cases: int
    relative: float | None
    map: str
    best: str | None
    typical: Number
    lines: dict[str, CarriedLine]
    minimum: list[float] | None

    @model_validator(mode="after")
    def _check_lines(self) -> Self:
        columns = [one for own in self.lines.values() for one in (own.share, own.low, own.high)]
        columns += [] if self.minimum is None else [self.minimum]
        if any(len(one) != len(self.ks) for one in columns):
            raise ValueError(f"has lines that are not of {len(self.ks)} counts")
        if lost := {self.map, self.best or self.map} - set(self.lines):
            raise ValueError(f"has no line of {min(lost)!r}")
        return self

    def count_at(self, ranking: str, k: int) -> int:
        """Slides whose decision the first K tiles carry, to the nearest slide over the seeds."""
        return int(self.lines[ranking].at(self.ks, k) * self.n_slides + 0.5)


class Summary(Record):
    """All numbers of an audit; ``views`` holds them by view and ranking, ``notes`` the caveats.

    ``map`` is the name of the ranking that is judged: ``native``, or that of a score file.
    ``k_decisive`` is the largest count of decisive K; None where it follows the slide. ``carried``
    is None where no slide is sure, or none was deleted.
    """

    format: int
    classes: list[str]
    n_slides: int
    n_cases: int
    n_skipped: int
    kappa: float
    k_max: int
    k_decisive: int | None = None
    level: float
    first_view: View
    full_bag: FullBag
    output: Output = "class"
    map: str
    rankings: list[str]
    views: dict[View, dict[str, RankingNumbers]]
    agreement: list[PairAgreement]
    answers: Answers
    carried: Carried | None = None
    notes: list[str]

    @model_validator(mode="after")
    def _check_views(self) -> Self:
        if self.first_view not in self.views or not self.rankings:
            raise ValueError(f"holds no rankings in the view {self.first_view}")
        for view, by_ranking in self.views.items():
            if lost := set(self.rankings) ^ set(by_ranking):
                raise ValueError(f"lists {min(lost)!r} in rankings or view {view} only")
        if self.carried is not None and self.carried.map != self.map:
            raise ValueError(f"judges {self.map!r}, but shows what {self.carried.map!r} carries")
        return self

    def __repr__(self) -> str:
        slides = f"{counted(self.n_slides, 'slide')} of {counted(self.n_cases, 'patient')}"
        names = ", ".join(self.rankings)
        return f"Summary({slides}; rankings: {names}; {self.in_short})"

    __str__ = __repr__

    @property
    def in_short(self) -> str:
        """The answers in one line."""
        return f"map: {self.answers.map.answer}; better order: {self.answers.order.short}"

    def to_json(self) -> str:
        """Text of ``summary.json``; equal numbers give equal bytes."""
        content = self.model_dump(mode="json")
        return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
