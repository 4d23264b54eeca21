"""Criteria that choose the best epoch of a fit, on its validation slides."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from torch import Tensor

from foci.backbones.freezing import frozen
from foci.bags import Cohort, Slide
from foci.metrics import aukc
from foci.registry import Registry
from foci.reveal import KAPPA, EmbeddedBag, Revealer
from foci.selectors.evidence import OrderReading, columns_of, net_gain, read_orders
from foci.selectors.prepared import PreparedBag, PreparedBags, confidence
from foci.selectors.selector import Selector

AUKC_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)


Criterion = Callable[[Selector], float]
"""A score of the selector after every epoch; the epoch with the highest score is kept."""


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
            target = followed(slide)
            scores = selector.scores(bag.tokens, target, _evidence(kept))
            values.append(aukc_on_grid(bag, scores, target))
        return float(np.mean(values))


def aukc_on_grid(
    bag: EmbeddedBag, scores: Tensor, target: int, k_max: int = AUKC_COUNTS[-1]
) -> float:
    """AUKC of one slide at the counts of :data:`AUKC_COUNTS` up to ``k_max``.

    Args:
        bag: The slide.
        scores: ``[N]``, one per tile; the highest is revealed first.
        target: The class followed.
        k_max: Largest count.
    """
    ks = sorted({min(k, len(bag)) for k in AUKC_COUNTS if k <= k_max})
    order = scores.argsort(descending=True, stable=True)
    return aukc(bag.curve(order, ks).numpy(), ks, len(bag), target)


class ValidationDecisive:
    """Decisive sets against those of ``evidence``, on decided validation slides: the net gain.

    See :func:`~foci.selectors.evidence.net_gain`; evidence itself gains nothing but its
    deletion area, which breaks ties. Where no slide is decided, all of them are read. Everything is
    read at the full-bag prediction.

    Args:
        bags: The bags of the fit.
        val: The validation slides.
    """

    def __init__(self, bags: PreparedBags, val: Cohort) -> None:
        self.bags, self.val = bags, val
        self._slides: list[Slide] | None = None
        self._evidence: list[OrderReading] = []

    def __call__(self, selector: Selector) -> float:
        """Net gain of the selector over evidence."""
        if self._slides is None:
            slides = [slide for slide in self.val if len(self.bags[slide].coords) > 1]
            sure = [slide for slide in slides if confidence(self.bags[slide]) >= KAPPA]
            self._slides = sure or slides
            self._evidence = [self._read(slide, None) for slide in self._slides]
        if not self._slides:
            return 0.0
        return net_gain([self._read(slide, selector) for slide in self._slides], self._evidence)

    def _read(self, slide: Slide, selector: Selector | None) -> OrderReading:
        target, tiles = self.bags.predicted_of(slide), self.bags[slide].tiles
        bag = self.bags.opened(slide, target)
        with frozen(bag.backbone):
            if selector is None:
                scores = columns_of(bag)[:, target, 0]
            else:
                scores = selector.scores(tiles["tokens"], target, tiles.get("evidence"))
            order = scores.argsort(descending=True, stable=True)
            return read_orders(bag, [order], target)[0]


def _evidence(prepared: PreparedBag | None) -> Tensor | None:
    return None if prepared is None else prepared.tiles.get("evidence")


CRITERIA: Registry[Callable[[PreparedBags, Cohort], Criterion | None]] = Registry("criterion")
"""Makers of criteria by name; None stands for the validation loss, which every epoch has anyway."""

CRITERIA.add("aukc", ValidationAukc)
CRITERIA.add("decisive", ValidationDecisive)
CRITERIA.add("loss", lambda bags, val: None)
