"""Numbers of one ranking in one view: means, bootstrap intervals, comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Literal

import numpy as np

from foci.audits.analysis.bootstrap import Resampled
from foci.audits.analysis.slides.per_slide import SlideMetrics
from foci.audits.analysis.slides.views import ViewSlides
from foci.audits.analysis.summary import (
    CurveBand,
    MeanDrops,
    RankingNumbers,
    SelectedOnly,
    Survival,
    median_k,
)
from foci.audits.records import CountsBehind, Interval, Mean, Paired, Saving, SignedRankTest, plain
from foci.audits.settings import AnalysisSettings
from foci.metrics import (
    captured_headroom,
    fallback_share,
    kaplan_meier,
    mean_drops,
    msk_cond,
    paired_msk,
    percentile_interval,
    reach_split,
    restricted_mean,
    shi,
    wilcoxon,
)
from foci.metrics.cohort.headroom import relative_saving
from foci.metrics.cohort.sampling import Sampling
from foci.metrics.inputs import Floats, defined_mean
from foci.metrics.stats import mean_intervals

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
