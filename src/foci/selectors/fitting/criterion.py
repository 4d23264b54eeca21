"""Criteria that choose the best epoch of a fit: validation AUKC, validation loss, or your own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from foci.bags import Cohort
from foci.errors import FociError
from foci.metrics import aukc
from foci.registry import Registry
from foci.reveal import Revealer
from foci.selectors.fitting.prepared import PreparedBags
from foci.selectors.selector import Selector

AUKC_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)


class Criterion(Protocol):
    """A score of the selector after every epoch; the epoch with the highest score is kept.

    Attributes:
        name: Identifies the criterion: an interrupted fit is resumed only with the same name.
    """

    name: str

    def __call__(self, selector: Selector) -> float:
        """Score a selector, higher is better."""


class ValidationAukc:
    """Mean AUKC of the validation slides, over a grid of counts up to 256.

    A class-conditional selector is judged as it will be used: read at the model's full-bag
    prediction, whose probability is followed, even if it is fitted for the label. A selector with
    one score per tile has the same order for every class, and the probability of the fit's target
    is followed.

    Args:
        bags: The bags of the fit; those that are in memory are not embedded again.
        val: The validation slides.
    """

    name = "aukc"

    def __init__(self, bags: PreparedBags, val: Cohort) -> None:
        self.bags, self.val = bags, val
        self.revealer = Revealer(bags.gated.backbone, recheck=())

    def __call__(self, selector: Selector) -> float:
        """Mean over the slides."""
        values = []
        for slide in self.val:
            kept = self.bags.in_memory(slide)
            tokens = None if kept is None else kept.tiles["tokens"]
            bag = self.revealer.open(self.val.store.bag(slide), tokens)
            followed = self.bags.predicted_of if selector.class_conditional else self.bags.target_of
            target, n = followed(slide), len(bag)
            ks = sorted({min(k, n) for k in AUKC_COUNTS})
            order = selector.scores(bag.tokens, target).argsort(descending=True, stable=True)
            values.append(aukc(bag.curve(order, ks).numpy(), ks, n, target))
        return float(np.mean(values))


CRITERIA: Registry[Callable[[PreparedBags, Cohort], Criterion | None]] = Registry("criterion")
"""Makers of criteria by name; None stands for the validation loss, which every epoch has anyway."""

CRITERIA.add("aukc", ValidationAukc)
CRITERIA.add("loss", lambda bags, val: None)


def check_criterion(criterion: str | Criterion) -> None:
    """Refuse an unknown name, and a criterion without a name of its own."""
    if isinstance(criterion, str):
        CRITERIA[criterion]
        return
    if not callable(criterion) or not isinstance(getattr(criterion, "name", None), str):
        known = " or ".join(CRITERIA)
        raise FociError(
            "criterion",
            f"{type(criterion).__name__} has no name by which a killed fit could be resumed",
            f"set its attribute name to a string, or choose {known}",
        )


def make_criterion(criterion: str | Criterion, bags: PreparedBags, val: Cohort) -> Criterion | None:
    """The criterion of a name, or the one given; None for the validation loss."""
    return CRITERIA[criterion](bags, val) if isinstance(criterion, str) else criterion
