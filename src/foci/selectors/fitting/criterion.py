"""What chooses the epoch of a selector."""

from __future__ import annotations

import numpy as np

from foci.backbones import Backbone
from foci.bags import Cohort
from foci.metrics import aukc
from foci.reveal import Revealer
from foci.selectors import Criterion, Selector
from foci.selectors.recipes import Target

AUKC_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)


def validation_aukc(backbone: Backbone, cohort: Cohort, target: Target) -> Criterion:
    """Judge a selector by the mean AUKC of some slides, over a grid of counts up to 256.

    Args:
        backbone: The classifier that is read out.
        cohort: The slides.
        target: The class whose probability is followed, and at which a class-conditional
            selector is read.
    """
    revealer = Revealer(backbone, recheck=())

    def mean_aukc(selector: Selector) -> float:
        values = []
        for bag in cohort.bags():
            opened, n = revealer.open(bag.x), len(bag)
            ks = sorted({min(k, n) for k in AUKC_COUNTS})
            predicted = target == "prediction"
            y = int(opened.full().argmax()) if predicted else cohort.target(bag.slide_id)
            order = selector.rank(bag.x, y).argsort(descending=True, stable=True)
            values.append(aukc(opened.curve(order, ks).numpy(), ks, n, y))
        return float(np.mean(values))

    return mean_aukc
