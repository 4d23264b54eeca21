"""Judge orders of tiles on slides: the mix that a fit starts from, and its best epoch.

Orders are read both ways, revealed and deleted; an audit chooses its readout by the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from foci.backbones.freezing import frozen
from foci.bags import Cohort, Slide
from foci.metrics import aukc, decisive_k, deletion_drop, faithfulness_auc, msk
from foci.metrics.compare import order_differences
from foci.registry import Registry
from foci.reveal import GRID, KAPPA, EmbeddedBag, Revealer
from foci.reveal.engines import default_counts
from foci.reveal.pooled import pools
from foci.selectors.evidence import columns_of
from foci.selectors.prepared import PreparedBags
from foci.selectors.selector import EvidenceHead, Selector

TUNING_SLIDES = 100
"""Most training slides that are read to choose a mix."""

Criterion = Callable[[Selector], float]
"""A score of the selector after every epoch; the epoch with the highest score is kept."""


@dataclass(frozen=True)
class OrderReading:
    """Numbers of one order on one slide.

    Attributes:
        msk: Fewest first tiles that suffice; NaN where none do.
        decisive: Decisive K; NaN where there is none.
        area: Mean drop of the target's probability over the deletions; NaN with fewer than two.
    """

    msk: float
    decisive: float
    area: float


def read_orders(
    bag: EmbeddedBag, orders: Sequence[Tensor], target: int, *, kappa: float = KAPPA
) -> list[OrderReading]:
    """Reveal and delete the tiles of several orders, at every count of a pooling classifier.

    Other classifiers are read at the counts of :data:`foci.reveal.GRID`. An order has tile indices,
    most important first; the bag has two tiles or more.
    """
    if pools(bag.backbone):
        counts = default_counts(len(bag), "delete")[1:]
    else:
        counts = torch.tensor([k for k in GRID if k < len(bag)])
    ks, full, readings = counts.numpy(), bag.full().numpy(), []
    inserted, deleted = bag.curves(orders, counts), bag.curves(orders, counts, "delete")
    for up, down in zip(inserted, deleted, strict=True):
        sufficient = msk(up.numpy(), ks, target, kappa=kappa)
        decisive = decisive_k(up.numpy(), ks, down.numpy(), ks, target, kappa)
        drops = deletion_drop(full, down.numpy(), ks, target)
        readings.append(
            OrderReading(
                msk=np.nan if sufficient is None else float(sufficient),
                decisive=np.nan if decisive is None else float(decisive),
                area=faithfulness_auc(ks, drops, k_max=int(ks[-1])) if len(ks) > 1 else np.nan,
            )
        )
    return readings


def net_gain(readings: Sequence[OrderReading], base: Sequence[OrderReading]) -> float:
    r"""How much better one order is than another over the same slides.

    .. math:: D_\mathrm{decisive} + \min(D_\mathrm{MSK}, 0) + 10^{-3} \bar A

    D is the mean over slides of +1 where the order needs fewer tiles than the base, -1 where it
    needs more, 0 where both need the same or both fail. Decisive sets come first, no number of
    them pays for sufficient ones, and the mean deletion area :math:`\bar A` breaks ties.
    """
    decisive = order_differences([r.decisive for r in readings], [r.decisive for r in base])
    sufficient = order_differences([r.msk for r in readings], [r.msk for r in base])
    areas = [0.0 if np.isnan(reading.area) else reading.area for reading in readings]
    gain = float(np.mean(decisive)) + min(float(np.mean(sufficient)), 0.0)
    return gain + 1e-3 * float(np.mean(areas))


def tune(
    head: EvidenceHead, bags: PreparedBags, slides: Sequence[Slide], generator: torch.Generator
) -> bool:
    """Set the mix of a head: the best single column, or its sum with another one.

    Every mix is read on decided training slides, at the predicted class, and judged by
    :func:`net_gain` over evidence. Nothing is set, and False returned, where no mix gains. Where
    there are more slides than :data:`TUNING_SLIDES`, the generator draws so many of them.
    """
    if head.columns == 1:
        return False
    order = torch.randperm(len(slides), generator=generator).tolist()
    decided = [slides[i] for i in order if bags[slides[i]].decided][:TUNING_SLIDES]
    if not decided:
        return False

    def read(mixes: Tensor) -> list[tuple[OrderReading, ...]]:
        """Readings of every mix ``[M, P]``, slide by slide."""

        def scores(bag: EmbeddedBag, slide: Slide) -> Tensor:
            columns = bags[slide].tiles["evidence"][:, bag.target]
            return columns @ mixes.T.to(bag.features.device)

        return list(zip(*(_read_slide(bags, slide, scores) for slide in decided), strict=True))

    single = torch.eye(head.columns, dtype=torch.float64)
    found = read(single)
    gains = [net_gain(own, found[0]) for own in found]
    best = int(np.argmax(gains))
    pairs = single[best] + single[[p for p in range(head.columns) if p != best]]
    pair_gains = [net_gain(own, found[0]) for own in read(pairs)]
    if max(gains[best], *pair_gains) <= gains[0]:
        return False
    best_pair = int(np.argmax(pair_gains))
    head.mix.copy_(single[best] if gains[best] >= pair_gains[best_pair] else pairs[best_pair])
    return True


def _read_slide(
    bags: PreparedBags, slide: Slide, scores: Callable[[EmbeddedBag, Slide], Tensor]
) -> list[OrderReading]:
    """Readings, at the predicted class, of the orders by scores ``[N, M]``, highest first."""
    target = bags.predicted_of(slide)
    bag = bags.opened(slide, target)
    with frozen(bag.backbone):
        orders = scores(bag, slide).argsort(dim=0, descending=True, stable=True)
        return read_orders(bag, list(orders.T), target)


class ValidationAukc:
    """Mean AUKC of the validation slides, over a grid of counts up to 256.

    A class-conditional selector is judged as it will be used: read at the model's full-bag
    prediction, whose probability is followed, even if it is fitted for the label. A selector with
    one score per tile has the same order for every class, and the probability of the fit's target
    is followed. Bags that the fit has in memory are not embedded again.
    """

    def __init__(self, bags: PreparedBags, val: Cohort) -> None:
        self.bags, self.val = bags, val
        self.revealer = Revealer(bags.gated.backbone, recheck=())

    def __call__(self, selector: Selector) -> float:
        """Mean over the slides."""
        values = []
        followed = self.bags.predicted_of if selector.class_conditional else self.bags.target_of
        for slide in self.val:
            kept = self.bags.in_memory(slide)
            tiles = {} if kept is None else kept.tiles
            bag = self.revealer.open(self.val.store.bag(slide), tiles.get("tokens"))
            target = followed(slide)
            scores = selector.scores(bag.tokens, target, tiles.get("evidence"))
            values.append(aukc_on_grid(bag, scores, target))
        return float(np.mean(values))


def aukc_on_grid(bag: EmbeddedBag, scores: Tensor, target: int, k_max: int = GRID[-1]) -> float:
    """AUKC of one slide at the counts of :data:`~foci.reveal.GRID` up to ``k_max``.

    The tile with the highest of the scores ``[N]`` is revealed first, the target class followed.
    """
    ks = sorted({min(k, len(bag)) for k in GRID if k <= k_max})
    order = scores.argsort(descending=True, stable=True)
    return aukc(bag.curve(order, ks).numpy(), ks, len(bag), target)


class ValidationDecisive:
    """Decisive sets against those of ``evidence``, on decided validation slides: the net gain.

    See :func:`net_gain`; evidence itself gains nothing but its deletion area, which breaks ties.
    Where no slide is decided, all of them are read. Everything is read at the full-bag prediction.
    """

    def __init__(self, bags: PreparedBags, val: Cohort) -> None:
        self.bags, self.val = bags, val

    @cached_property
    def _slides(self) -> list[Slide]:
        slides = [slide for slide in self.val if len(self.bags[slide].coords) > 1]
        return [slide for slide in slides if self.bags[slide].decided] or slides

    @cached_property
    def _evidence(self) -> list[OrderReading]:
        return self._read(lambda bag, slide: columns_of(bag)[:, bag.target, :1])

    def __call__(self, selector: Selector) -> float:
        """Net gain of the selector over evidence."""

        def scores(bag: EmbeddedBag, slide: Slide) -> Tensor:
            evidence = self.bags[slide].tiles.get("evidence")
            return selector.scores(bag.tokens, bag.target, evidence).unsqueeze(1)

        return net_gain(self._read(scores), self._evidence) if self._slides else 0.0

    def _read(self, scores: Callable[[EmbeddedBag, Slide], Tensor]) -> list[OrderReading]:
        return [_read_slide(self.bags, slide, scores)[0] for slide in self._slides]


CRITERIA: Registry[Callable[[PreparedBags, Cohort], Criterion | None]] = Registry("criterion")
"""Makers of criteria by name; None stands for the validation loss, which every epoch has anyway."""

CRITERIA.add("aukc", ValidationAukc)
CRITERIA.add("decisive", ValidationDecisive)
CRITERIA.add("loss", lambda bags, val: None)
