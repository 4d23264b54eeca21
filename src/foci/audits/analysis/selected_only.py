"""Classification AUC with all tiles, and with only the selected tiles kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from foci.audits.analysis.slides.seeds import in_batches
from foci.audits.analysis.slides.views import ViewSlides
from foci.audits.analysis.summary import FullBag, SelectedOnly
from foci.audits.compute.counts import KEPT
from foci.audits.folder.curves import CurveTable
from foci.metrics import auc, stack
from foci.metrics.cohort.selected_only import adaptive_budgets, kept_alone
from foci.metrics.inputs import Floats, Integers

if TYPE_CHECKING:
    from foci.backbones.training import Predictions


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
            auc=_mean([fixed for fixed, _ in aucs[ranking]]),
            adaptive_auc=_mean([adaptive for _, adaptive in aucs[ranking]]),
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


def _mean(values: Sequence[float | None]) -> float | None:
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
