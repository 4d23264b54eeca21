"""Choose the mix of evidence columns that needs the fewest tiles on training slides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from foci.backbones.freezing import frozen
from foci.bags import Slide
from foci.reveal import KAPPA
from foci.selectors.evidence.head import EvidenceHead
from foci.selectors.evidence.net_gain import OrderReading, net_gain, read_orders
from foci.selectors.fitting.prepared import PreparedBags, confidence

AT_MOST = 100
"""Training slides that are read."""


def tune(
    head: EvidenceHead, bags: PreparedBags, slides: Sequence[Slide], generator: torch.Generator
) -> bool:
    """Set the mix of a head: the best single column, or its sum with another one.

    Every mix is read on decided training slides, at the predicted class, and judged by
    :func:`~foci.selectors.evidence.net_gain.net_gain` over evidence. Nothing is set where no mix
    gains.

    Args:
        head: Its mix is set.
        bags: The bags of the fit.
        slides: The training slides.
        generator: Draws :data:`AT_MOST` of them where there are more.

    Returns:
        Whether a mix was set.
    """
    if head.columns == 1:
        return False
    order = torch.randperm(len(slides), generator=generator).tolist()
    decided = [slides[i] for i in order if _decided(bags, slides[i])][:AT_MOST]
    single = torch.eye(head.columns, dtype=torch.float64)
    if not decided:
        return False
    found = _read(bags, decided, single)
    base = found[0]
    gains = [net_gain(own, base) for own in found]
    best = int(np.argmax(gains))
    pairs = single[best] + single[[p for p in range(head.columns) if p != best]]
    pair_gains = [net_gain(own, base) for own in _read(bags, decided, pairs)]
    mix = single[best] if gains[best] >= max(pair_gains) else pairs[int(np.argmax(pair_gains))]
    if max(gains[best], *pair_gains) <= gains[0]:
        return False
    head.mix.copy_(mix)
    return True


def _decided(bags: PreparedBags, slide: Slide) -> bool:
    prepared = bags[slide]
    return len(prepared.coords) > 1 and confidence(prepared) >= KAPPA


def _read(bags: PreparedBags, slides: Sequence[Slide], mixes: Tensor) -> list[list[OrderReading]]:
    """Readings of every mix ``[M, P]``, slide by slide."""
    found: list[list[OrderReading]] = [[] for _ in mixes]
    for slide in slides:
        target = bags.predicted_of(slide)
        with frozen(bags.gated.backbone):
            bag = bags.opened(slide, target)
            scores = bags[slide].tiles["evidence"][:, target] @ mixes.T.to(bag.features.device)
            orders = list(scores.argsort(dim=0, descending=True, stable=True).T)
            for own, reading in zip(found, read_orders(bag, orders, target), strict=True):
                own.append(reading)
    return found
