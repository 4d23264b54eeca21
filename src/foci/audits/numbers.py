"""Every number of an audit from what was measured on its slides: means, intervals, comparisons.

All rankings of a view share their bootstrap draws over patients, so that differences between them
are paired.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import accumulate, combinations, pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.stats import hypergeom

from foci import metrics
from foci.audits.alarms import caveats
from foci.audits.answers import DecidedView, answer_questions, efficiency_of
from foci.audits.folder import FORMAT, CurveTable, RankedTiles
from foci.audits.measure import Measured, MeasuredSlides, Threshold, WholeSlides
from foci.audits.records import (
    Answers,
    Carried,
    CarriedLine,
    ClassNumbers,
    CountQuartiles,
    CountsBehind,
    DecidedNumbers,
    FullBag,
    Mean,
    MeanDrops,
    PairAgreement,
    RankingNumbers,
    RiskGroup,
    Saving,
    SelectedOnly,
    Summary,
    Survival,
    plain,
)
from foci.audits.settings import KEPT, PAPER, RANDOM, SHARE, AuditSettings, View
from foci.metrics.compare import patient_means, relative_saving
from foci.metrics.decisive import carried_marks
from foci.metrics.inputs import Floats, Integers, Marks, defined_mean
from foci.metrics.outcomes import (
    c_index_interval,
    constant_labels,
    macro_auc_interval,
    r_squared_interval,
    survival_curve,
)
from foci.metrics.ranking import overlaps, rank_correlations
from foci.metrics.stats import (
    draws_between,
    interval_ends,
    percentile_interval,
    spearman_interval,
)
from foci.outputs import SURVIVAL, Cut

if TYPE_CHECKING:
    from foci.backbones.training import Predictions

TOPS = (8, 32)
GREEDY = "greedy-insertion"
Draws = Mapping[str, Floats]
"""Bootstrap means of one ranking by number, ``[B]`` each; none where there is one patient."""


def summarise(
    measured: MeasuredSlides,
    curves: CurveTable,
    classes: Sequence[str],
    settings: AuditSettings,
    agreement: Sequence[PairAgreement],
    n_skipped: int = 0,
) -> Summary:
    """Average metrics over slides, compare the rankings, and answer the three questions.

    Args:
        measured: Metrics of every slide, at the threshold and budget of ``settings``.
        curves: The stored curves, up to the budget of the run.
        classes: Class names, in the model's order.
        settings: Threshold, budget, first view, intervals; they may differ from those of the run.
        agreement: Of every pair of rankings.
        n_skipped: Number of skipped slides.
    """
    slides, labelled = measured.slides, measured.slides.labelled
    kept = selected_only(measured)
    decided = {
        name: decided_numbers(measured.of(name), slides, settings, classes)
        for name in curves.rankings
    }
    own_view = DecidedView(measured, settings, Threshold(settings.kappa))
    numbers: dict[View, dict[str, RankingNumbers]] = {}
    for view in measured.tables:
        drawn = resample(measured, view, settings.n_boot)
        numbers[view] = {
            name: ranking_numbers(
                name,
                measured,
                view,
                drawn,
                settings,
                selected_only=kept[name],
                decided=decided[name] if view == "prediction" else None,
                null=own_view.against_nulls(name) if view == "prediction" else None,
            )
            for name in curves.rankings
        }
    right = None if labelled is None else labelled.predictions == labelled.labels
    answers = answer_questions(measured, classes, settings, decided)
    full = FullBag(
        auc=None if labelled is None else auc_or_none(labelled.full, labelled.labels),
        accuracy=None if right is None else float(right.mean()),
        **outcome_scores(slides, settings, classes),
    )
    return Summary(
        format=FORMAT,
        classes=list(classes),
        n_slides=len(slides),
        n_cases=len(set(slides.cases)),
        n_skipped=n_skipped,
        kappa=settings.kappa,
        k_max=settings.k_max,
        k_decisive=settings.k_max if settings.profile == PAPER else None,
        level=settings.level,
        first_view=settings.target if settings.target in numbers else "prediction",
        full_bag=full,
        output=settings.output or "class",
        map=settings.map_name,
        rankings=list(curves.rankings),
        views=numbers,
        agreement=list(agreement),
        answers=answers,
        carried=carried_slides(measured, settings, answers),
        notes=caveats(measured, classes, settings, numbers, full.left_out),
    )


def resample(measured: MeasuredSlides, view: View, n_boot: int) -> dict[str, Draws]:
    r"""Resample patients and recompute every mean, with the same draws for all rankings.

    The conditional MSK is a ratio, so each seed has its own column and the mean over the seeds is
    taken per draw, as for the estimate:

    .. math:: \overline{\mathrm{MSK}}^{(b)} = R^{-1} \sum_r
       \frac{\sum_s w_s^{(b)} \mathrm{MSK}_{r,s}}{\sum_s w_s^{(b)}}
       \quad \text{over the slides that seed } r \text{ reaches}

    The other means run over all slides, so the seeds are averaged before the slides. One patient
    leaves nothing to draw: then there are no draws.
    """
    cases = measured.slides_of(view).cases
    columns: list[Floats] = []
    ends = []
    for name in measured.curves.rankings:
        own = measured.of(name, view)
        columns += [*(defined_mean(v, axis=0) for v in own.averaged.values()), *own.msk]
        ends.append(len(columns))
    draws = draws_between(metrics.case_means(np.column_stack(columns), cases, n_boot), cases)
    drawn: dict[str, Draws] = {}
    parts = np.split(draws, ends[:-1], axis=1)
    for name, part in zip(measured.curves.rankings, parts, strict=True):
        means = dict(zip(measured.of(name, view).averaged, part.T, strict=False))
        drawn[name] = {**means, "msk_cond": defined_mean(part[:, len(means) :], axis=1)}
    return drawn


def ranking_numbers(
    name: str,
    measured: MeasuredSlides,
    view: View,
    drawn: Mapping[str, Draws],
    settings: AuditSettings,
    **more: Any,
) -> RankingNumbers:
    """Average one ranking over the slides of a view and compare it with native and random.

    ``drawn`` are the bootstrap means of all rankings, ``more`` the numbers computed apart.
    """
    own, cases = measured.of(name, view), measured.slides_of(view).cases
    seeds = {key: defined_mean(table, axis=1) for key, table in own.averaged.items()}
    seeds["msk_cond"] = np.array([metrics.msk_cond(row) for row in own.msk])
    for key, each in seeds.items():
        estimate = float(defined_mean(each))
        more[key] = percentile_interval(estimate, drawn[name][key], settings.level)
        more[f"{key}_seeds"] = plain(each)
    stable = [metrics.restricted_mean(row, settings.k_max) for row in own.stable]
    fallback = [metrics.fallback_share(*rows) for rows in zip(own.msk, own.stable, strict=True)]
    drops = own.mean_drops
    mean_drop, n_dropped = metrics.mean_drops(drops)
    km = metrics.kaplan_meier(own.msk.ravel(), settings.k_max)
    needed = np.where(np.isnan(own.msk), np.inf, own.msk)

    def still_open(slides: Integers) -> Floats:
        """``[S, K]`` share of the seeds under which a slide needs more than each count."""
        marks = sum((one[slides, None] > km.ks).astype(np.float64) for one in needed)
        return np.asarray(marks) / len(needed)

    correct, wrong = _reach_by_correctness(own, measured.slides_of(view))
    more |= {"paired": None, "wilcoxon": None}
    if settings.map_name in drawn and name != settings.map_name:
        native = measured.of(settings.map_name, view)
        # the slides that both reach with all of their seeds
        paired = metrics.paired_msk(native.msk.mean(axis=0), own.msk.mean(axis=0))
        tested = metrics.wilcoxon(
            *(patient_means(n.restricted.mean(axis=0), cases) for n in (native, own))
        )
        more |= {"paired": paired, "wilcoxon": tested}
    return RankingNumbers(
        reach_correct=correct,
        reach_wrong=wrong,
        stable_restricted=float(np.mean(stable)),
        fallback=float(defined_mean(np.array(fallback))),
        specific=float(own.specific.mean()),
        drops=MeanDrops(
            ks=list(settings.deletion),
            mean=plain(mean_drop),
            n_slides=plain(n_dropped),
            **_ends(drops, cases, settings),
        ),
        km=Survival(
            ks=km.ks.astype(np.int64).tolist(),
            survival=km.survival.tolist(),
            **_ends(still_open, cases, settings),
        ),
        median_k=None if km.median is None else int(km.median),
        mean_curve=measured.mean_curves[view][name],
        shi_native=_saving_against(settings.map_name, name, measured, view, drawn, settings.level),
        shi_random=_saving_against(RANDOM, name, measured, view, drawn, settings.level),
        captured=_captured(name, settings.map_name, measured, view),
        counts=_counts_behind(own),
        **more,
    )


def _counts_behind(own: Measured) -> CountsBehind:
    deleted = own.deleted.any(axis=1)
    deletion: Literal["dense", "grid", "none"] = "none"
    if deleted.any():
        deletion = "dense" if own.deleted_all[deleted].all() else "grid"
    return CountsBehind(
        insertion="dense" if own.revealed_all.all() else "grid",
        deletion=deletion,
        n_deleted=int(deleted.sum()),
        n_bounds=own.upper_bounds(own.msk),
        aukc_error=float(own.aukc_error.mean()),
        aukc_error_max=float(own.aukc_error.max()),
    )


def _ends(
    values: Floats | Callable[[Integers], Floats], cases: Sequence[str], settings: AuditSettings
) -> dict[str, Any]:
    """Ends of the intervals over patients of the mean of every column of ``[S, M]``."""
    low, high = interval_ends(values, cases, **settings.drawn)
    return {"low": low, "high": high}


def _reach_by_correctness(own: Measured, slides: WholeSlides) -> tuple[float | None, float | None]:
    """Reach on correctly classified and on misclassified slides; None without labels."""
    labelled = slides.labels >= 0
    if not labelled.any():
        return None, None
    predictions, labels = slides.predictions[labelled], slides.labels[labelled]
    splits = [metrics.reach_split(row[labelled], predictions, labels) for row in own.msk]
    correct, wrong = (np.mean([getattr(s, end) for s in splits]) for end in ("correct", "wrong"))
    return float(correct), float(wrong)


def _saving_against(
    base: str,
    name: str,
    measured: MeasuredSlides,
    view: View,
    drawn: Mapping[str, Draws],
    level: float,
) -> Saving | None:
    """SHI computed from means over the seeds, its paired patient interval, SHI of each seed.

    A seed that reaches no slide has no MSK and is left out of the mean.
    """
    if base == name or base not in drawn:
        return None
    before, after = (
        [metrics.msk_cond(row) for row in measured.of(n, view).msk] for n in (base, name)
    )
    before, defined = ([n for n in own if not np.isnan(n)] for own in (before, after))
    if not before or not defined:
        return Saving(estimate=None, low=None, high=None, seeds=[None] * len(after))
    draws = relative_saving(drawn[base]["msk_cond"], drawn[name]["msk_cond"])
    seeds = [None if np.isnan(count) else metrics.shi(before, count) for count in after]
    found = percentile_interval(metrics.shi(before, defined), draws, level)
    return Saving(**vars(found), seeds=seeds)


def _captured(name: str, base: str, measured: MeasuredSlides, view: View) -> float | None:
    """Share of the saving of greedy search that a ranking captures; None if not all were run."""
    if not {base, GREEDY} <= set(measured.curves.rankings) or name in (base, GREEDY):
        return None
    counts = [measured.of(n, view).restricted.mean(axis=1) for n in (base, name, GREEDY)]
    return metrics.captured_headroom(*counts)


def decided_numbers(
    own: Measured, slides: WholeSlides, settings: AuditSettings, classes: Sequence[str]
) -> DecidedNumbers:
    """Medians, means and shares of one ranking over decided slides; seeds are pooled."""
    decided, reaches = Threshold(settings.kappa).decided(slides), own.reached > 0
    both = own.with_decisive
    longer = np.broadcast_to(slides.n_tiles > own.k_max, own.msk.shape)
    at_share = own.at("msk_at", Threshold(SHARE, relative=True))
    gains = (own.peak - slides.sure)[~decided & reaches]
    per_class, every = {}, Threshold(settings.kappa).decided(replace(slides, asked=None))
    for index, name in enumerate(classes):
        chosen = every & (slides.predictions == index)
        decisive = _decisive(own, slides, chosen)
        per_class[name] = ClassNumbers(
            n_slides=int(chosen.sum()),
            msk=CountQuartiles.over(own.msk[:, chosen], longer[:, chosen]),
            decisive=decisive["decisive"],
            decisive_share=decisive["decisive_share"],
        )
    return DecidedNumbers(
        n_slides=int(decided.sum()),
        msk=CountQuartiles.over(own.msk[:, decided], longer[:, decided]),
        stable=CountQuartiles.over(own.stable[:, decided], longer[:, decided]),
        restricted=_restricted(own, slides, decided, settings),
        fallback=_share((own.stable != own.msk)[:, decided], reaches[:, decided]),
        **_decisive(own, slides, decided),
        **({} if both is None else efficiency_of(both.decisive, slides, decided, settings)),
        relative=CountQuartiles.over(at_share, longer),
        undecided_crosses=_share(reaches[:, ~decided]),
        undecided_overshoot=float(gains.mean()) if len(gains) else None,
        per_class=per_class,
    )


def _decisive(measured: Measured, slides: WholeSlides, decided: Marks) -> dict[str, Any]:
    """The fields that decisive K fills."""
    own = measured.with_decisive
    if own is None:
        names = ("decisive", "decisive_share", "deciding", "decisive_paper", "decisive_paper_share")
        return {**dict.fromkeys((*names, "flips_back")), "exact": False}
    kept = np.broadcast_to((slides.n_tiles > 1) & decided, own.decisive.shape)
    longer = ~own.ends[kept]
    counts, paper = own.decisive[kept], own.decisive_paper[kept]
    return {
        "decisive": CountQuartiles.over(counts, longer),
        "decisive_share": _share(~np.isnan(counts)),
        "deciding": float(np.nanmedian(counts)) if (~np.isnan(counts)).any() else None,
        "decisive_paper": CountQuartiles.over(paper, longer),
        "decisive_paper_share": _share(~np.isnan(paper)),
        "flips_back": _share(own.flips_back[kept], ~np.isnan(counts)),
        "exact": bool(own.deleted_all.all()),
    }


MOST_COUNTS = 256
"""Of a chart: every count up to it, and as many evenly spaced on a log axis beyond."""


def carried_slides(
    measured: MeasuredSlides, settings: AuditSettings, answers: Answers
) -> Carried | None:
    """Share of slides whose decision the first K tiles carry, by order, with patient bands.

    Over the sure slides of two or more tiles; relative to each slide's own confidence where the
    first question cannot be answered on those.
    """
    slides, chart_map, best = measured.slides, settings.map_name, answers.tiles.ranking
    relative = answers.map.answer == "not assessable" and bool(answers.relative)
    threshold = Threshold(SHARE, relative=True) if relative else Threshold(settings.kappa)
    names = dict.fromkeys((chart_map, best, RANDOM))
    known = {
        name: own
        for name in names
        if name in measured.curves.rankings and (own := measured.of(name).with_decisive) is not None
    }
    kept = threshold.decided(slides) & (slides.n_tiles > 1)
    if chart_map not in known or not kept.any():
        return None
    ks = np.arange(1, min(settings.k_max, MOST_COUNTS) + 1)
    if settings.k_max > MOST_COUNTS:
        spaced = np.geomspace(MOST_COUNTS, settings.k_max, MOST_COUNTS)
        ks = np.unique(np.concatenate([ks, np.rint(spaced).astype(np.int64)]))
    counts = {name: own.at("decisive_at", threshold)[:, kept] for name, own in known.items()}
    cases, least = slides.cases_of(kept), slides.k_star[kept]
    in_use = metrics.carried_share(counts[best if best in counts else chart_map], ks)
    half = np.flatnonzero(in_use >= 0.5)
    bounded = bool((slides.proven | ~np.isnan(slides.k_star))[kept].all()) and not relative

    def line(own: Floats) -> CarriedLine:
        ends = _ends(lambda rows: carried_marks(own[:, rows], ks), cases, settings)
        return CarriedLine(share=metrics.carried_share(own, ks).tolist(), **ends)

    return Carried(
        ks=ks.tolist(),
        n_slides=int(kept.sum()),
        n_cases=len(set(cases)),
        relative=SHARE if relative else None,
        map=chart_map,
        best=best if best in counts and best != chart_map else None,
        typical=float(ks[half[0]]) if len(half) else None,
        lines={name: line(own) for name, own in counts.items()},
        minimum=metrics.carried_share(least, ks).tolist() if bounded else None,
    )


def _restricted(
    own: Measured, slides: WholeSlides, decided: Marks, settings: AuditSettings
) -> Mean | None:
    """Mean over decided slides, ``min(K_max, N)`` where a slide never reaches."""
    if not decided.any():
        return None
    ceiling = np.minimum(own.k_max, slides.n_tiles)
    values = np.where(np.isnan(own.msk), ceiling, own.msk).mean(axis=0)[decided]
    cases = slides.cases_of(decided)
    draws = draws_between(metrics.case_means(values[:, None], cases, settings.n_boot)[:, 0], cases)
    return Mean.model_validate(percentile_interval(float(values.mean()), draws, settings.level))


def _share(marks: Marks, among: Marks | None = None) -> float | None:
    """Share of true marks, of all or of those that are ``among``; None of none."""
    flat = marks.ravel() if among is None else marks[among]
    return float(flat.mean()) if len(flat) else None


def selected_only(measured: MeasuredSlides) -> dict[str, SelectedOnly | None]:
    """AUC with only the first 32 (or the adaptive number of) tiles kept, by ranking.

    Averaged over the seeds. None without labels; an AUC is None where a count was not revealed or a
    class is absent. These tiles are kept whatever the budget.
    """
    rankings, labelled = measured.curves.rankings, measured.slides.labelled
    if labelled is None:
        return dict.fromkeys(rankings)
    sizes, rows = labelled.n_tiles, measured.rows("label")
    aucs: dict[str, list[list[float | None]]] = {name: [] for name in rankings}
    for (name, _), kept in zip(measured.curves.orders, measured.kept, strict=True):
        each = np.moveaxis(kept[rows], 1, 0)
        aucs[name].append([auc_or_none(probs, labelled.labels) for probs in each])
    found: dict[str, SelectedOnly | None] = {}
    for name, own in aucs.items():
        fixed, adaptive = (_mean_of_seeds(values) for values in zip(*own, strict=True))
        found[name] = SelectedOnly(
            k=KEPT,
            auc=fixed,
            adaptive_auc=adaptive,
            n_whole=int((sizes <= KEPT).sum()),
            n_slides=len(labelled),
        )
    return found


def _mean_of_seeds(values: Sequence[float | None]) -> float | None:
    """Mean over the seeds; None where one has no value."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if len(known) == len(values) else None


def auc_or_none(probs: Floats, labels: Integers) -> float | None:
    """AUC, or None where a class is absent or a probability is missing."""
    every_class = set(range(probs.shape[1])) == set(labels.tolist())
    return metrics.auc(probs, labels) if every_class and not np.isnan(probs).any() else None


def outcome_scores(
    slides: WholeSlides, settings: AuditSettings, sides: Sequence[str]
) -> dict[str, Any]:
    """C-index of a risk, R2 and rank correlation of a number, macro AUC of labels, with intervals.

    And the survival of the slides on either side of the cut.
    """
    known: Marks = np.asarray(np.isfinite(slides.outcomes).all(axis=1))
    cut, tau = settings.cut, settings.tau
    if cut is None or tau is None or not slides.outcomes.shape[1] or known.sum() < 2:
        return {}
    f = Cut(cut, tau).output(slides.full[known], settings.kappa)
    truth, cases = slides.outcomes[known].T, slides.cases_of(known)
    scored: dict[str, Any] = {"n_scored": int(known.sum())}
    if settings.output == "multilabel":
        constant = constant_labels(truth.T)
        scored["left_out"] = [
            n for n, out in zip(settings.label_names, constant, strict=True) if out
        ]
        if constant.all():
            return scored
        macro = macro_auc_interval(slides.label_outputs[known], truth.T, cases, **settings.drawn)
        return {**scored, "macro_auc": macro}
    if settings.output in SURVIVAL:
        found = c_index_interval(f, truth[0], truth[1], cases, **settings.drawn)
        groups = [
            _risk_group(name, *truth[:, slides.predictions[known] == side])
            for side, name in enumerate(sides)
        ]
        return {
            **scored, "n_events": int(truth[1].sum()), "c_index": found,
            "risk_groups": groups,
        }  # fmt: skip
    r2 = r_squared_interval(f, truth[0], cases, **settings.drawn)
    rho = spearman_interval(f, truth[0], cases, **settings.drawn)
    return {**scored, "r_squared": r2, "spearman": rho}


def _risk_group(name: str, time: Floats, event: Floats) -> RiskGroup:
    times, alive = survival_curve(time, event)
    return RiskGroup(
        name=name,
        n_slides=len(time),
        n_events=int(event.sum()),
        last=float(time.max(initial=0)),
        times=times.tolist(),
        alive=alive.tolist(),
    )


def split_scores(predictions: Predictions) -> dict[str, float | None]:
    """AUC, accuracy and loss of a split; AUC is None if a class is absent."""
    return {
        "auc": auc_or_none(predictions.probabilities, predictions.labels),
        "accuracy": predictions.accuracy,
        "loss": predictions.loss,
    }


Pair = tuple[str, str]


def pair_agreement(
    slide: RankedTiles, columns: Mapping[str, Sequence[str]]
) -> dict[Pair, list[float]]:
    """Rank correlation and top-K overlaps, and these by chance, of every pair of rankings.

    Averaged over the pairs of seeds. A slide with fewer than K tiles has no overlap at K, and a
    constant ranking has no correlation: both are NaN. ``columns`` are those of every ranking;
    rankings without stored scores are left out.
    """
    stored = {
        ranking: own
        for ranking, names in columns.items()
        if (own := [name for name in names if name in slide.scores])
    }
    if len(stored) < 2:
        return {}
    ends = list(accumulate(map(len, stored.values()), initial=0))
    rows = {ranking: slice(*own) for ranking, own in zip(stored, pairwise(ends), strict=True)}
    scores = np.stack([slide.scores[name] for own in stored.values() for name in own])
    n_rankings, n_tiles = scores.shape
    absent = np.full((n_rankings, n_rankings), np.nan)
    tables = [rank_correlations(scores)]
    tables += [overlaps(scores, k) if k <= n_tiles else absent for k in TOPS]
    chance = [chance_overlap(n_tiles, k) for k in TOPS]
    return {
        (first, second): [
            *(float(defined_mean(table[rows[first], rows[second]])) for table in tables), *chance,
        ]
        for first, second in combinations(stored, 2)
    }  # fmt: skip


def mean_agreement(found: Mapping[Pair, Floats]) -> list[PairAgreement]:
    """One row per pair of rankings, from ``[S, ...]`` numbers of :func:`pair_agreement`."""
    rows = []
    for (first, second), slides in found.items():
        spearman, *shared = defined_mean(slides, axis=0).tolist()
        names = [f"{what}{k}" for what in ("jaccard", "chance") for k in TOPS]
        overlap = dict(zip(names, shared, strict=True))
        rows.append(PairAgreement(first=first, second=second, spearman=spearman, **overlap))
    return rows


@cache
def chance_overlap(n_tiles: int, k: int) -> float:
    r"""Expected Jaccard overlap of two random sets of K out of N tiles; NaN where K > N.

    .. math:: \mathbb{E}\Big[\frac{X}{2K - X}\Big], \qquad X \sim \mathrm{Hypergeometric}(N, K, K)

    >>> chance_overlap(8, 8), round(chance_overlap(2, 1), 3)
    (1.0, 0.5)
    """
    if k > n_tiles:
        return float("nan")
    shared = np.arange(max(0, 2 * k - n_tiles), k + 1)
    weights = hypergeom.pmf(shared, n_tiles, k, k)
    return float((weights * shared / (2 * k - shared)).sum())
