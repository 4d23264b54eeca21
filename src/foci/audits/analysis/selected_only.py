"""Classification AUC with all tiles, and with only the selected tiles kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from foci.audits.analysis.slides.views import ViewSlides
from foci.audits.analysis.summary import FullBag, SelectedOnly
from foci.audits.compute.counts import KEPT
from foci.audits.folder.curves import CurveTable
from foci.metrics import auc
from foci.metrics.cohort.selected_only import selected_probabilities
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
    curves: CurveTable, ranking: str, labelled: ViewSlides | None
) -> SelectedOnly | None:
    """AUC with only the first 32 (or the adaptive number of) tiles kept, averaged over seeds.

    None without labels; an AUC is None where a count was not revealed or a class is absent.
    """
    if labelled is None:
        return None
    return SelectedOnly(
        k=KEPT,
        auc=_mean_auc(curves, ranking, labelled, KEPT),
        adaptive_auc=_mean_auc(curves, ranking, labelled, None),
        n_whole=int((labelled.n_tiles <= KEPT).sum()),
        n_slides=len(labelled),
    )


def auc_or_none(probs: Floats, labels: Integers) -> float | None:
    """AUC, or None where a class is absent or a probability is missing."""
    defined = _every_class(labels, probs.shape[1]) and not np.isnan(probs).any()
    return auc(probs, labels) if defined else None


def _every_class(labels: Integers, n_classes: int) -> bool:
    return set(range(n_classes)) == set(labels.tolist())


def _mean_auc(
    curves: CurveTable, ranking: str, labelled: ViewSlides, k: int | None
) -> float | None:
    if not _every_class(labelled.labels, labelled.full.shape[1]):
        return None
    seeds = curves.every_seed(ranking)
    chosen = [curve for inserted in seeds for curve in labelled.of(inserted)]
    again = labelled.repeated(len(seeds))  # all seeds at once, as if they were more slides
    kept = selected_probabilities(
        [c.probs for c in chosen], [c.ks for c in chosen], again.n_tiles, again.full, k
    )
    if np.isnan(kept).any():
        return None
    return float(np.mean([auc(own, labelled.labels) for own in np.split(kept, len(seeds))]))


def split_scores(predictions: Predictions) -> dict[str, float | None]:
    """AUC, accuracy and loss of a split; AUC is None if a class is absent."""
    return {
        "auc": auc_or_none(predictions.probabilities, predictions.labels),
        "accuracy": predictions.accuracy,
        "loss": predictions.loss,
    }
