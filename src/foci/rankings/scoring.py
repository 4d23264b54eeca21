"""Rank the tiles of a bag by the name of a ranking."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from foci.backbones import Backbone
from foci.backbones.freezing import frozen
from foci.bags import Bag
from foci.errors import FociError
from foci.rankings.ranking import Ranking
from foci.rankings.registry import RANKINGS
from foci.reveal import EmbeddedBag


def score(
    name: str,
    backbone: Backbone,
    bag: Bag | Tensor | EmbeddedBag,
    *,
    target: int | None = None,
    **options: Any,
) -> Ranking:
    """Rank the tiles of one bag.

    The classifier runs in eval mode; weights, gradients and training modes stay as they were.

    Args:
        name: One of :func:`~foci.rankings.available`.
        backbone: The frozen classifier.
        bag: A bag or its features ``[N, D]``; for several rankings of one bag an
            :class:`~foci.rankings.EmbeddedBag`, so that it is embedded once.
        target: Class that the ranking is about; default is the class the full bag predicts.
        **options: The ranking's own options.

    Raises:
        FociError: If the ranking, an option or the target is unknown, if the classifier lacks
            what the ranking needs, or if a score is NaN.

    >>> import torch
    >>> from foci import backbones, rankings
    >>> model = backbones.create("abmil", d_in=8, n_classes=2)
    >>> ranking = rankings.score("leave-one-out", model, torch.randn(5, 8))
    >>> ranking.scores.shape, ranking.order.shape
    ((5,), (5,))
    """
    method = RANKINGS[name]
    method.check(backbone, options)
    bag = _embed(backbone, bag, target)
    with frozen(backbone):
        scores = method.function(bag, **options)
    if scores.shape != (len(bag),):
        raise FociError(
            bag.slide_id,
            f"the ranking {name!r} has shape {list(scores.shape)} for {len(bag)} tiles",
            "it must give one score per tile",
        )
    return Ranking(name, bag.slide_id, scores.detach().double().cpu().numpy())


def _embed(backbone: Backbone, bag: Bag | Tensor | EmbeddedBag, target: int | None) -> EmbeddedBag:
    if not isinstance(bag, EmbeddedBag):
        return EmbeddedBag(backbone, bag, target)
    if bag.backbone is not backbone:
        raise FociError(
            bag.slide_id, "was embedded by another backbone", "embed it with the one given"
        )
    return bag if target is None else bag.with_target(target)
