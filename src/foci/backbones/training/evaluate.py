"""Full-bag predictions of a cohort, with loss and accuracy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foci.backbones.base import Backbone
from foci.backbones.freezing import frozen, home
from foci.bags import Bag, Cohort


@dataclass(frozen=True)
class Predictions:
    """Full-bag predictions of one cohort.

    Attributes:
        slide_ids: The slides, in cohort order.
        probabilities: ``[S, C]`` float64.
        labels: ``[S]`` class indices.
    """

    slide_ids: tuple[str, ...]
    probabilities: NDArray[np.float64]
    labels: NDArray[np.int64]

    @property
    def loss(self) -> float:
        r"""Mean cross-entropy :math:`-\log p_y`."""
        chosen = self.probabilities[np.arange(len(self.labels)), self.labels]
        return float(-np.log(np.maximum(chosen, np.finfo(np.float64).tiny)).mean())

    @property
    def accuracy(self) -> float:
        """Share of slides whose most probable class is their label."""
        return float((self.probabilities.argmax(axis=1) == self.labels).mean())


def predict(backbone: Backbone, cohort: Cohort, bags: Iterable[Bag] | None = None) -> Predictions:
    """Predict the class probabilities of labelled slides from their full bags.

    Args:
        backbone: Used in eval mode, which is restored afterwards.
        cohort: Gives the labels.
        bags: Default is all readable bags of the cohort.
    """
    device, _ = home(backbone)
    names, rows, labels = [], [], []
    with frozen(backbone):
        for bag in cohort.bags() if bags is None else bags:
            names.append(bag.slide_id)
            rows.append(backbone.predict(bag.x.to(device)).cpu().numpy())
            labels.append(cohort.target(bag.slide_id))
    return Predictions(tuple(names), np.stack(rows), np.array(labels, dtype=np.int64))
