"""Read one audit: every number that a table of a study may ask for, and the data of its figures.

Curves are measured by :mod:`foci.audits.analysis` and :mod:`foci.metrics`, never here. What is
kept is small, so that a study of many audits is read one audit at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from foci.audits import StoredAudit
from foci.audits.analysis.answers.threshold import Threshold
from foci.audits.analysis.selected_only import auc_or_none
from foci.audits.analysis.slides.per_slide import MeasuredSlides, SlideMetrics, measure_slides
from foci.audits.analysis.slides.views import ViewSlides
from foci.audits.analysis.summary import RankingNumbers
from foci.audits.settings import AuditSettings, View
from foci.metrics import adaptive_budget, mean_drops, msk_cond, paper_faithfulness, restricted_mean
from foci.metrics import selected_only_auc as only
from foci.metrics.curve.deletion import PAPER_COUNTS
from foci.metrics.inputs import Floats, defined_mean
from foci.studies.readings.facts import AuditFacts, facts_of
from foci.studies.readings.measures import Measure

Reading = float | str
"""A number, or the reason why there is none."""

KEPT = 32


@dataclass(frozen=True)
class Wanted:
    """At what thresholds and counts an audit is read: the ``read`` block of a study.

    Attributes:
        kappas: Confidences.
        budgets: Largest reveal counts.
        selected_k: Counts of the selected-only tables.
        alpha: Share of the adaptive count.
        k_min: Its smallest value.
    """

    kappas: tuple[float, ...] = (0.7, 0.8, 0.9, 0.95)
    budgets: tuple[int, ...] = (32, 256)
    selected_k: tuple[int, ...] = (8, 16, 32, 64, 128)
    alpha: float = 0.03
    k_min: int = 16


@dataclass(frozen=True, eq=False)
class AuditReading:
    """What a study keeps of one audit.

    Attributes:
        numbers: By measure: the number, or why there is none.
        facts: Slides, tiles, model and settings behind them.
        curves: Mean probability of the label at every count from 1 on, by ranking.
        msk: MSK of every slide in the label view, by ranking; the first seed.
    """

    numbers: Mapping[Measure, Reading]
    facts: AuditFacts
    curves: Mapping[str, Floats]
    msk: Mapping[str, Floats]


def read_audit(audit: StoredAudit, wanted: Wanted) -> AuditReading:
    """Measure the stored curves of an audit at every threshold and budget that tables show."""
    stored = audit.manifest.settings
    numbers: dict[Measure, Reading] = {}
    budgets = {None: stored.k_max} | {b: b for b in wanted.budgets if b <= stored.k_max}
    measured: dict[int, MeasuredSlides] = {}
    for name, k_max in budgets.items():
        settings = _settings(stored, wanted, k_max)
        if k_max not in measured:
            measured[k_max] = measure_slides(
                audit.curves, audit.slides, audit.manifest.classes, settings
            )
        numbers |= dict(_sufficiency(measured[k_max], settings, name))
    own = measured[stored.k_max]
    facts = facts_of(audit, own.views["prediction"])
    numbers |= dict(_deletion(own))
    numbers |= dict(_selected(audit, own, wanted))
    numbers |= dict(_decided(audit))
    numbers |= {Measure("share_32"): 100 * facts.share_of_32}
    label = own.metrics.get("label", {})
    return AuditReading(
        numbers=numbers,
        facts=facts,
        curves={name: _every_count(metrics, stored.k_max) for name, metrics in label.items()},
        msk={name: metrics.msk[0] for name, metrics in label.items()},
    )


def _settings(stored: AuditSettings, wanted: Wanted, k_max: int) -> AuditSettings:
    changes = {"kappas": wanted.kappas, "k_max": k_max, "deletion": PAPER_COUNTS}
    return stored.model_copy(update=changes)


def _sufficiency(
    measured: MeasuredSlides, settings: AuditSettings, k_max: int | None
) -> Iterator[tuple[Measure, Reading]]:
    """Conditional MSK, Reach in percent, AUKC and restricted mean."""
    views: tuple[View, ...] = ("label", "prediction")
    for view in views:
        for name, own in measured.metrics.get(view, {}).items():
            yield Measure("aukc", name, view, k_max=k_max), float(own.aukc.mean())
            for kappa in (None, *settings.kappas):
                counts = own.msk if kappa is None else own.at[Threshold(kappa)].msk
                reaches = ~np.isnan(counts)
                mean = float(defined_mean(np.array([msk_cond(row) for row in counts])))
                least = settings.kappa if kappa is None else kappa
                reason = f"no slide reaches {least:g}"
                yield (
                    Measure("msk_cond", name, view, kappa, k_max),
                    mean if reaches.any() else reason,
                )
                yield Measure("reach", name, view, kappa, k_max), 100 * float(reaches.mean())
                means = [restricted_mean(row, own.k_max) for row in counts]
                yield Measure("restricted", name, view, kappa, k_max), float(np.mean(means))


def _deletion(measured: MeasuredSlides) -> Iterator[tuple[Measure, Reading]]:
    """Mean drops at the paper's counts, and the paper's Faithfulness AUC; label view."""
    for name, own in measured.metrics.get("label", {}).items():
        largest = int(measured.views["label"].n_tiles.max())
        means, n_slides = mean_drops(own.drops)
        absent: str | None = None
        for k, mean, n in zip(PAPER_COUNTS, means, n_slides, strict=True):
            few = f"no slide has more than {k} tiles"
            reason = few if largest <= k else f"no deletion of {k} tiles was measured"
            absent = absent or (None if n else reason)
            yield Measure("drop", name, k=k), float(mean) if n else reason
            yield Measure("drop_slides", name, k=k), float(n)
        yield Measure("faithfulness", name), absent or paper_faithfulness(own.drops)
        per_slide = float(defined_mean(own.faithfulness.ravel()))
        few = "no slide was deleted at two of the paper's counts"
        yield Measure("slide_faithfulness", name), few if np.isnan(per_slide) else per_slide


def _selected(
    audit: StoredAudit, measured: MeasuredSlides, wanted: Wanted
) -> Iterator[tuple[Measure, Reading]]:
    """AUC with all tiles, and with only the first K."""
    labelled = measured.views.get("label")
    if labelled is None:
        return
    full = auc_or_none(labelled.full, labelled.labels)
    reason = "a class has no slide"
    yield Measure("auc"), reason if full is None else full
    yield Measure("accuracy"), 100 * float((labelled.predictions == labelled.labels).mean())
    if full is None:
        return
    budgets = [adaptive_budget(int(n), wanted.alpha, wanted.k_min) for n in labelled.n_tiles]
    counts: dict[int | None, int | list[int]] = {k: k for k in {*wanted.selected_k, KEPT}}
    counts[None] = budgets
    for name in audit.curves.rankings:
        for k, kept in counts.items():
            found = [_auc(labelled, audit, name, seed, kept) for seed in audit.curves.seeds(name)]
            value: Reading = "this count was not revealed"
            if not np.isnan(found).any():
                value = float(np.mean(found))
            yield Measure("selected_auc", name, k=k), value


def _auc(
    labelled: ViewSlides, audit: StoredAudit, name: str, seed: int | None, kept: int | list[int]
) -> float:
    chosen = labelled.of(audit.curves.get(name, seed))
    probs, ks = [curve.probs for curve in chosen], [curve.ks for curve in chosen]
    return only(probs, ks, labelled.n_tiles, labelled.full, labelled.labels, kept)


def _decided(audit: StoredAudit) -> Iterator[tuple[Measure, Reading]]:
    """Counts over decided slides and decisive K, as the audit's summary has them."""
    for name, numbers in audit.summary.views["prediction"].items():
        yield from _of_decided(name, numbers)


def _of_decided(name: str, numbers: RankingNumbers) -> Iterator[tuple[Measure, Reading]]:
    decided = numbers.decided
    if decided is None:
        return
    view: View = "prediction"
    undecided = "the model is sure of no slide"
    mean = undecided if decided.restricted is None else decided.restricted.estimate
    yield Measure("decided_k", name, view), mean
    if decided.decisive is None:
        reason = undecided if not decided.n_slides else "deletion was not measured at every count"
        yield Measure("decisive_k", name, view), reason
        return
    median = decided.decisive.median
    missing = {"beyond": "more than K_max tiles on half of the decided slides"}.get(
        median.missing or "", "half of the decided slides have no decisive set"
    )
    yield Measure("decisive_k", name, view), missing if median.value is None else median.value
    if decided.decisive_share is not None:
        yield Measure("decisive_share", name, view), 100 * decided.decisive_share


def _every_count(metrics: SlideMetrics, k_max: int) -> Floats:
    """Mean curve at 1, 2, ..., K_max; between its counts and after its last it holds its value."""
    held = np.searchsorted(metrics.curve.ks, np.arange(1, k_max + 1), side="right") - 1
    values: Floats = metrics.curve.mean[np.maximum(held, 0)]
    return values


def names_of(readings: Sequence[AuditReading]) -> tuple[str, ...]:
    """Rankings that any of these audits has, in the order of the first that has them."""
    return tuple(dict.fromkeys(name for one in readings for name in one.curves))
