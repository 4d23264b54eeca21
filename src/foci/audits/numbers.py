"""Bootstrap over patients, with the same draws for all rankings of a view (paired)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from foci.audits.jobs import KEPT
from foci.audits.measure import SlideMetrics, ViewSlides, in_batches
from foci.audits.records import CountsBehind, Interval, Mean, Paired, Saving, SignedRankTest, plain
from foci.audits.settings import AnalysisSettings
from foci.audits.stored import CurveTable
from foci.audits.summary import (
    CurveBand,
    FullBag,
    MeanDrops,
    RankingNumbers,
    SelectedOnly,
    Survival,
    median_k,
)
from foci.metrics import (
    auc,
    captured_headroom,
    case_means,
    fallback_share,
    kaplan_meier,
    mean_drops,
    msk_cond,
    paired_msk,
    percentile_interval,
    reach_split,
    restricted_mean,
    shi,
    stack,
    wilcoxon,
)
from foci.metrics.cohort import adaptive_budgets, kept_alone
from foci.metrics.compare import relative_saving
from foci.metrics.inputs import Floats, Integers, defined_mean
from foci.metrics.stats import Sampling, draws_between, mean_intervals

if TYPE_CHECKING:
    from foci.backbones.training import Predictions


@dataclass(frozen=True, eq=False)
class Resampled:
    """Bootstrap means of one ranking, ``[B]`` each: one value per draw, none of one patient.

    Attributes:
        msk_cond: Conditional MSK, averaged over the seeds.
        restricted: Restricted mean K.
        reach: Share of slides that reach.
        aukc: Area under the K-curve.
        faithfulness: Faithfulness AUC.
    """

    msk_cond: Floats
    restricted: Floats
    reach: Floats
    aukc: Floats
    faithfulness: Floats


def resample(
    rankings: Sequence[SlideMetrics], cases: Sequence[str], n_boot: int
) -> dict[str, Resampled]:
    r"""Resample patients and recompute every mean, with the same draws for all rankings.

    The conditional MSK is a ratio, so each seed has its own column and the mean over the seeds is
    taken per draw, as for the estimate:

    .. math:: \overline{\mathrm{MSK}}^{(b)} = R^{-1} \sum_r
       \frac{\sum_s w_s^{(b)} \mathrm{MSK}_{r,s}}{\sum_s w_s^{(b)}}
       \quad \text{over the slides that seed } r \text{ reaches}

    The other means run over all slides, so the seeds are averaged before the slides. One patient
    leaves nothing to draw: then there are no draws.
    """
    columns, ends = [], []
    for own in rankings:
        over_seeds = [
            defined_mean(values, axis=0)
            for values in (own.restricted, own.reached, own.aukc, own.faithfulness)
        ]
        columns += [*over_seeds, *own.msk]
        ends.append(len(columns))
    draws = draws_between(case_means(np.column_stack(columns), cases, n_boot), cases)
    drawn = {}
    for own, part in zip(rankings, np.split(draws, ends[:-1], axis=1), strict=True):
        restricted, reach, aukc, faithfulness = part[:, :4].T
        msk_cond = defined_mean(part[:, 4:], axis=1)
        drawn[own.ranking] = Resampled(msk_cond, restricted, reach, aukc, faithfulness)
    return drawn


# Numbers of one ranking in one view: means, bootstrap intervals, comparisons.


NATIVE, RANDOM, GREEDY = "native", "random", "greedy-insertion"


def ranking_numbers(
    name: str,
    metrics: Mapping[str, SlideMetrics],
    drawn: Mapping[str, Resampled],
    slides: ViewSlides,
    settings: AnalysisSettings,
    kept: SelectedOnly | None,
) -> RankingNumbers:
    """Average one ranking over the slides and compare it with native and random.

    Args:
        name: Name of the ranking.
        metrics: Metrics of every slide, by ranking.
        drawn: Their bootstrap means, by ranking.
        slides: The slides of the view.
        settings: Threshold, budget, level.
        kept: AUC with only the first tiles kept.
    """
    own, draws, level = metrics[name], drawn[name], settings.level
    counts = [msk_cond(row) for row in own.msk]
    stable = [restricted_mean(row, settings.k_max) for row in own.stable]
    fallback = [fallback_share(*rows) for rows in zip(own.msk, own.stable, strict=True)]
    mean_drop, n_dropped = mean_drops(own.drops)
    km = kaplan_meier(own.msk.ravel(), settings.k_max)
    survival = Survival(
        ks=km.ks.astype(np.int64).tolist(),
        survival=km.survival.tolist(),
        **_ends(_still_open(own.msk, km.ks), slides, settings),
    )
    correct, wrong = _reach_by_correctness(own, slides)
    compared = name != NATIVE and NATIVE in metrics
    native = metrics[NATIVE] if compared else own
    return RankingNumbers(
        msk_cond=_interval(float(defined_mean(np.array(counts))), draws.msk_cond, level),
        msk_cond_seeds=_listed(np.array(counts)),
        restricted=_mean(own.restricted, draws.restricted, level),
        restricted_seeds=_per_seed(own.restricted),
        reach=_mean(own.reached, draws.reach, level),
        reach_seeds=_per_seed(own.reached),
        reach_correct=correct,
        reach_wrong=wrong,
        aukc=_mean(own.aukc, draws.aukc, level),
        aukc_seeds=_per_seed(own.aukc),
        stable_restricted=float(np.mean(stable)),
        fallback=float(defined_mean(np.array(fallback))),
        specific=float(own.specific.mean()),
        faithfulness=_interval(_over_seeds(own.faithfulness), draws.faithfulness, level),
        faithfulness_seeds=_per_seed(own.faithfulness),
        drops=MeanDrops(
            ks=list(settings.deletion),
            mean=_listed(mean_drop),
            n_slides=n_dropped.tolist(),
            **_ends(own.drops, slides, settings),
        ),
        km=survival,
        median_k=median_k(survival.ks, survival.survival),
        mean_curve=CurveBand(**vars(own.curve)),
        shi_native=_saving_against(NATIVE, name, metrics, drawn, level),
        shi_random=_saving_against(RANDOM, name, metrics, drawn, level),
        paired=_paired(native, own) if compared else None,
        wilcoxon=_signed_rank(native, own, slides.cases) if compared else None,
        captured=_captured(name, metrics),
        selected_only=kept,
        counts=_counts_behind(own.sampling),
    )


def _counts_behind(sampling: Sampling) -> CountsBehind:
    deletion: Literal["dense", "grid", "none"] = "none"
    if sampling.n_deleted:
        rows = sampling.deleted[sampling.deleted.any(axis=1)]
        deletion = "dense" if len(rows) == sampling.n_deleted and rows.all() else "grid"
    return CountsBehind(
        insertion="dense" if sampling.inserted.all() else "grid",
        deletion=deletion,
        n_deleted=sampling.n_deleted,
        n_bounds=int((~sampling.msk_exact).sum()),
        aukc_error=float(sampling.aukc_error.mean()),
        aukc_error_max=float(sampling.aukc_error.max()),
    )


def per_patient(values: Floats, cases: Sequence[str]) -> Floats:
    """Mean of ``[R, S]`` over seeds and over each patient's slides, patients sorted.

    >>> per_patient(np.array([[1.0, 3.0, 8.0]]), cases=["P2", "P2", "P1"]).tolist()
    [8.0, 2.0]
    """
    case = np.unique(np.asarray(cases), return_inverse=True)[1]
    means: Floats = np.bincount(case, weights=values.mean(axis=0)) / np.bincount(case)
    return means


def _interval(estimate: float, draws: Floats, level: float) -> Interval:
    return Interval(**asdict(percentile_interval(estimate, draws, level)))


def _mean(values: Floats, draws: Floats, level: float) -> Mean:
    return Mean(**asdict(percentile_interval(_over_seeds(values), draws, level)))


def _ends(
    values: Floats, slides: ViewSlides, settings: AnalysisSettings
) -> dict[str, list[float | None]]:
    """Ends of the intervals over patients of the mean of every column of ``[S, M]``."""
    found = mean_intervals(values, slides.cases, n_boot=settings.n_boot, level=settings.level)
    return {end: plain([getattr(one, end) for one in found]) for end in ("low", "high")}


def _still_open(msk: Floats, ks: Floats) -> Floats:
    """``[S, K]`` share of the seeds under which a slide needs more than each count."""
    needed = np.where(np.isnan(msk), np.inf, msk)
    share: Floats = (needed[:, :, None] > ks).mean(axis=0)
    return share


def _per_seed(values: Floats) -> list[float | None]:
    """Mean of ``[R, S]`` over the slides, for every seed."""
    return _listed(defined_mean(values, axis=1))


def _over_seeds(values: Floats) -> float:
    """Mean of ``[R, S]`` over the slides, then over the seeds."""
    return float(defined_mean(defined_mean(values, axis=1)))


def _listed(values: Floats) -> list[float | None]:
    listed: list[float | None] = plain(values)
    return listed


def _reach_by_correctness(
    own: SlideMetrics, slides: ViewSlides
) -> tuple[float | None, float | None]:
    """Reach on correctly classified and on misclassified slides; None without labels."""
    labelled = slides.labels >= 0
    if not labelled.any():
        return None, None
    predictions, labels = slides.predictions[labelled], slides.labels[labelled]
    splits = [reach_split(row[labelled], predictions, labels) for row in own.msk]
    correct, wrong = (np.mean([getattr(s, end) for s in splits]) for end in ("correct", "wrong"))
    return float(correct), float(wrong)


def _saving_against(
    base: str,
    name: str,
    metrics: Mapping[str, SlideMetrics],
    drawn: Mapping[str, Resampled],
    level: float,
) -> Saving | None:
    """SHI computed from means over the seeds, its paired patient interval, SHI of each seed.

    A seed that reaches no slide has no MSK and is left out of the mean.
    """
    if base == name or base not in metrics:
        return None
    before = [count for count in map(msk_cond, metrics[base].msk) if not np.isnan(count)]
    after = [msk_cond(row) for row in metrics[name].msk]
    defined = [count for count in after if not np.isnan(count)]
    if not before or not defined:
        return Saving(estimate=None, low=None, high=None, seeds=[None] * len(after))
    draws = relative_saving(drawn[base].msk_cond, drawn[name].msk_cond)
    interval = percentile_interval(shi(before, defined), draws, level)
    seeds = [None if np.isnan(count) else shi(before, count) for count in after]
    return Saving(**asdict(interval), seeds=seeds)


def _paired(base: SlideMetrics, own: SlideMetrics) -> Paired:
    """Mean MSK of two rankings on the slides that both reach with all of their seeds."""
    return Paired(**asdict(paired_msk(base.msk.mean(axis=0), own.msk.mean(axis=0))))


def _signed_rank(base: SlideMetrics, own: SlideMetrics, cases: Sequence[str]) -> SignedRankTest:
    """Wilcoxon signed-rank test on restricted counts, averaged per patient to one pair."""
    result = wilcoxon(per_patient(base.restricted, cases), per_patient(own.restricted, cases))
    return SignedRankTest(statistic=result.statistic, pvalue=result.pvalue, n_pairs=result.n_pairs)


def _captured(name: str, metrics: Mapping[str, SlideMetrics]) -> float | None:
    """Share of the saving of greedy search that a ranking captures; None if not all were run."""
    if NATIVE not in metrics or GREEDY not in metrics or name in (NATIVE, GREEDY):
        return None
    base, foci, greedy = (metrics[n].restricted.mean(axis=1) for n in (NATIVE, name, GREEDY))
    return captured_headroom(base, foci, greedy)


# Classification AUC with all tiles, and with only the selected tiles kept.


def full_bag(labelled: ViewSlides | None) -> FullBag:
    """AUC and accuracy with all tiles; None without labels, AUC also if a class is absent."""
    if labelled is None:
        return FullBag(auc=None, accuracy=None)
    right = labelled.predictions == labelled.labels
    return FullBag(auc=auc_or_none(labelled.full, labelled.labels), accuracy=float(right.mean()))


def selected_only(
    curves: CurveTable, labelled: ViewSlides | None
) -> dict[str, SelectedOnly | None]:
    """AUC with only the first 32 (or the adaptive number of) tiles kept, by ranking.

    Averaged over the seeds. None without labels; an AUC is None where a count was not revealed or a
    class is absent.
    """
    if labelled is None:
        return dict.fromkeys(curves.rankings)
    aucs = _aucs(curves, labelled)
    return {
        ranking: SelectedOnly(
            k=KEPT,
            auc=_mean_of_seeds([fixed for fixed, _ in aucs[ranking]]),
            adaptive_auc=_mean_of_seeds([adaptive for _, adaptive in aucs[ranking]]),
            n_whole=int((labelled.n_tiles <= KEPT).sum()),
            n_slides=len(labelled),
        )
        for ranking in curves.rankings
    }


def auc_or_none(probs: Floats, labels: Integers) -> float | None:
    """AUC, or None where a class is absent or a probability is missing."""
    defined = _every_class(labels, probs.shape[1]) and not np.isnan(probs).any()
    return auc(probs, labels) if defined else None


def _every_class(labels: Integers, n_classes: int) -> bool:
    return set(range(n_classes)) == set(labels.tolist())


def _aucs(
    curves: CurveTable, labelled: ViewSlides
) -> dict[str, list[tuple[float | None, float | None]]]:
    """AUC at the fixed and at the adaptive number of tiles of every seed, by ranking."""
    aucs: dict[str, list[tuple[float | None, float | None]]] = {}
    for orders in in_batches(curves.orders, len(labelled)):
        chosen = [curve for order in orders for curve in labelled.of(curves.get(*order))]
        again = labelled.repeated(len(orders))
        stacks = stack([c.probs for c in chosen], [c.ks for c in chosen])
        budgets = np.full(len(again), KEPT), adaptive_budgets(again.n_tiles)
        kept = (kept_alone(stacks, again.n_tiles, again.full, budget) for budget in budgets)
        split = (np.split(probs, len(orders)) for probs in kept)
        for (ranking, _), fixed, adaptive in zip(orders, *split, strict=True):
            both = auc_or_none(fixed, labelled.labels), auc_or_none(adaptive, labelled.labels)
            aucs.setdefault(ranking, []).append(both)
    return aucs


def _mean_of_seeds(values: Sequence[float | None]) -> float | None:
    """Mean over the seeds; None where one has no value."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if len(known) == len(values) else None


def split_scores(predictions: Predictions) -> dict[str, float | None]:
    """AUC, accuracy and loss of a split; AUC is None if a class is absent."""
    return {
        "auc": auc_or_none(predictions.probabilities, predictions.labels),
        "accuracy": predictions.accuracy,
        "loss": predictions.loss,
    }
