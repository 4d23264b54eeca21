"""Schema of ``summary.json``: every number that a report, a table or the terminal shows."""

from __future__ import annotations

import json
from collections.abc import Sequence

from foci.audits.agreement import PairAgreement
from foci.audits.answer_records import Answers
from foci.audits.decided import DecidedNumbers
from foci.audits.records import (
    Counts,
    CountsBehind,
    Interval,
    Mean,
    Number,
    Numbers,
    Paired,
    Record,
    Saving,
    SignedRankTest,
)
from foci.audits.settings import View
from foci.words import counted


class MeanDrops(Record):
    """Mean drop of the target's probability after deleting the first K tiles.

    Attributes:
        ks: Deletion counts.
        mean: Mean over the slides that have more than K tiles.
        n_slides: How many slides those are.
        low: Lower ends of the intervals over patients.
        high: Upper ends.
    """

    ks: Counts
    mean: Numbers
    n_slides: Counts
    low: Numbers
    high: Numbers


class Survival(Record):
    """Kaplan-Meier curve over K: the share of slides that need more than K tiles.

    Attributes:
        ks: Counts at which the share falls.
        survival: The share from each count on.
        low: Lower ends of the intervals over patients.
        high: Upper ends.
    """

    ks: Counts
    survival: list[float]
    low: Numbers
    high: Numbers


class CurveBand(Record):
    """Mean reveal curve over the slides, with a band.

    The band holds the quartiles over slides; for random orders, the smallest and the largest mean.
    """

    ks: Counts
    mean: Numbers
    low: Numbers
    high: Numbers


class SelectedOnly(Record):
    """AUC when only the first ``k`` tiles, or the adaptive number of tiles, are kept.

    Attributes:
        k: Tiles kept.
        auc: With the first ``k`` tiles.
        adaptive_auc: With max(16, 3 % of N) tiles.
        n_whole: Slides of which ``k`` tiles are the whole bag.
        n_slides: Slides that have a label.
    """

    k: int
    auc: Number
    adaptive_auc: Number
    n_whole: int
    n_slides: int


class RankingNumbers(Record):
    """All numbers of one ranking in one view.

    Attributes:
        msk_cond: Mean MSK over the slides that reach.
        restricted: Mean MSK over all slides; K_max where a slide never reaches.
        reach: Share of slides that reach.
        reach_correct: Reach among correctly classified slides.
        reach_wrong: Reach among misclassified slides.
        aukc: Area under the reveal curve.
        stable_restricted: Restricted mean of the stable MSK.
        fallback: Among slides that reach, the share that falls below kappa again later.
        specific: Share of slides on which the target comes before its rival.
        faithfulness: Faithfulness AUC.
        drops: Mean deletion drops.
        km: Kaplan-Meier curve over K.
        median_k: Tiles after which half of the slides have reached; None if they never do.
        mean_curve: Mean reveal curve.
        shi_native: SHI against the native ranking.
        shi_random: SHI against random orders.
        paired: Comparison with native on the slides that both reach.
        wilcoxon: Test against native.
        captured: Share of the saving of greedy search that this ranking captures.
        selected_only: AUC with only the first tiles kept; None without labels.
        decided: The same ranking over decided slides, with decisive K; prediction view only.
        counts: Which counts the numbers rest on.

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
    counts: CountsBehind


class FullBag(Record):
    """AUC and accuracy of the model on whole slides; None without labels."""

    auc: Number
    accuracy: Number


class Summary(Record):
    """All numbers of an audit.

    Attributes:
        format: Format number of the audit folder.
        classes: Class names, in the model's order.
        n_slides: Number of audited slides.
        n_cases: Number of their patients.
        n_skipped: Number of slides of the cohort that were skipped.
        kappa: Operating confidence.
        k_max: Largest reveal count.
        level: Coverage of the intervals.
        first_view: The view that comes first in tables.
        full_bag: AUC and accuracy of the whole slides.
        rankings: Names of the rankings, in the order of the tables.
        views: Numbers by view and ranking.
        agreement: Agreement of each pair of rankings on the tiles.
        answers: The three answers.
        notes: Caveats beside the numbers, one sentence each.
    """

    format: int
    classes: list[str]
    n_slides: int
    n_cases: int
    n_skipped: int
    kappa: float
    k_max: int
    level: float
    first_view: View
    full_bag: FullBag
    rankings: list[str]
    views: dict[View, dict[str, RankingNumbers]]
    agreement: list[PairAgreement]
    answers: Answers
    notes: list[str]

    def __repr__(self) -> str:
        slides = f"{counted(self.n_slides, 'slide')} of {counted(self.n_cases, 'patient')}"
        names = ", ".join(self.rankings)
        return f"Summary({slides}; rankings: {names}; {self.in_short})"

    __str__ = __repr__

    @property
    def in_short(self) -> str:
        """The answers in one line."""
        return f"map: {self.answers.map.answer}; better order: {self.answers.order.answer}"

    def to_json(self) -> str:
        """Text of ``summary.json``; equal numbers give equal bytes."""
        content = self.model_dump(mode="json")
        return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def median_k(ks: Sequence[int], survival: Sequence[float]) -> int | None:
    """Median of a Kaplan-Meier curve: tiles after which half of the slides have reached, or None.

    >>> median_k(ks=[0, 1, 4], survival=[1.0, 0.6, 0.2])
    4
    """
    half = (k for k, left in zip(ks, survival, strict=True) if left <= 0.5)
    return next(half, None)
