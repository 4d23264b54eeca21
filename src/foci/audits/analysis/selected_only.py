"""How well the model classifies: with all tiles, and with only the selected ones."""

from __future__ import annotations

import numpy as np

from foci.audits.analysis.summary import FullBag, SelectedOnly
from foci.audits.analysis.views import ViewSlides
from foci.audits.folder.curves import CurveTable
from foci.metrics import adaptive_budget, auc
from foci.metrics.cohort.stacked import probabilities_at, stack
from foci.metrics.inputs import Floats, Integers

KEPT = 32
"""The paper's fixed count."""


def full_bag(labelled: ViewSlides | None) -> FullBag:
    """AUC and accuracy with all tiles; None without labels, the AUC also without a class."""
    if labelled is None:
        return FullBag(auc=None, accuracy=None)
    right = labelled.predictions == labelled.labels
    return FullBag(auc=auc_or_none(labelled.full, labelled.labels), accuracy=float(right.mean()))


def selected_only(
    curves: CurveTable, ranking: str, labelled: ViewSlides | None
) -> SelectedOnly | None:
    """AUC when only the top 32 (or the adaptive number of) tiles are kept, mean over the seeds.

    None without labels; an AUC is None where a count was not revealed or a class is absent.
    """
    if labelled is None:
        return None
    n_tiles = labelled.n_tiles
    fixed = np.minimum(KEPT, n_tiles)
    adaptive = np.minimum([adaptive_budget(int(n)) for n in n_tiles], n_tiles)
    return SelectedOnly(
        k=KEPT,
        auc=_mean_auc(curves, ranking, labelled, fixed),
        adaptive_auc=_mean_auc(curves, ranking, labelled, adaptive),
    )


def auc_or_none(probs: Floats, labels: Integers) -> float | None:
    """AUC, or None where a class is absent or a probability is missing."""
    complete = set(range(probs.shape[1])) == set(labels.tolist())
    return auc(probs, labels) if complete and not np.isnan(probs).any() else None


def _mean_auc(
    curves: CurveTable, ranking: str, labelled: ViewSlides, kept: Integers
) -> float | None:
    values = []
    for inserted in curves.every_seed(ranking):
        chosen = labelled.of(inserted)
        stacks = stack([c.probs for c in chosen], [c.ks for c in chosen])
        probs = probabilities_at(stacks, labelled.full.shape[1], kept)
        whole = (kept == labelled.n_tiles)[:, None]  # all tiles kept: that is the full bag
        probs = np.where(np.isnan(probs) & whole, labelled.full, probs)
        value = auc_or_none(probs, labelled.labels)
        if value is None:
            return None
        values.append(value)
    return float(np.mean(values))
