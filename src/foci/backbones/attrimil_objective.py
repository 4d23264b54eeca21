"""How AttriMIL is trained: cross-entropy, neighbours that agree, and tiles kept to compare."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from foci.backbones.attrimil_constraints import (
    attribute_scores,
    rank_constraint,
    spatial_constraint,
)
from foci.backbones.batch import Batch
from foci.backbones.neighbours import neighbourhoods
from foci.backbones.objective import Objective
from foci.backbones.pooling import pool, softmax_weights
from foci.backbones.tile_queues import TileQueues
from foci.errors import FociError

if TYPE_CHECKING:
    from foci.backbones.attrimil import AttriMIL


class AttributeConstraints(Objective):
    r"""Neighbouring tiles should agree, and tiles of different slides should be ordered.

    .. math:: L = \mathrm{CE} + \lambda_s L_\mathrm{spatial} + \lambda_r L_\mathrm{rank}

    on the attribute scores :math:`A_{ci} = s_{ci} e^{a_{ci}}` of each bag
    (see :mod:`foci.backbones.attrimil_constraints`). For the rank constraint every class has
    two queues of tiles: top tiles of bags of that class, and of other bags. They hold
    *features*, so that an old tile is scored by the present weights. Bags are processed in the
    order of the batch; the loss is their mean. Without coordinates or strides there is no spatial
    constraint.

    As published, class 0 is the negative class: it has no spatial constraint and its own rank
    constraint. For subtypes of equal standing set ``symmetric``.

    Args:
        backbone: The AttriMIL to train.
        spatial_weight: :math:`\lambda_s`.
        rank_weight: :math:`\lambda_r`.
        queue_length: Tiles kept per queue.
        symmetric: Treat class 0 like every other class.
    """

    backbone: AttriMIL

    def __init__(
        self,
        backbone: AttriMIL,
        *,
        spatial_weight: float = 1.0,
        rank_weight: float = 5.0,
        queue_length: int = 4,
        symmetric: bool = False,
    ) -> None:
        super().__init__(backbone)
        if queue_length < 1:
            raise FociError("queue_length", f"is {queue_length}", "keep at least one tile")
        self.spatial_weight = spatial_weight
        self.rank_weight = rank_weight
        self.symmetric = symmetric
        self.positive = TileQueues(backbone.n_classes, queue_length, backbone.d_in)
        self.negative = TileQueues(backbone.n_classes, queue_length, backbone.d_in)
        self.to(backbone.beta)  # its device and dtype

    def begin_epoch(self) -> None:
        """Empty the queues: what they hold was chosen by weights of an epoch ago."""
        self.positive.clear()
        self.negative.clear()

    def forward(self, batch: Batch) -> Tensor:
        """Cross-entropy and both constraints, each averaged over the bags."""
        bag, spatial, rank = zip(*(self._terms(batch, b) for b in range(len(batch))), strict=True)
        return self.named_terms(
            bag=torch.stack(bag).mean(),
            spatial=self.spatial_weight * torch.stack(spatial).mean(),
            rank=self.rank_weight * torch.stack(rank).mean(),
        )

    def _terms(self, batch: Batch, b: int) -> tuple[Tensor, Tensor, Tensor]:
        real = batch.mask[b]
        features = batch.features[b, real]
        tokens = self.backbone.embed(features)
        attention, values = self.backbone.attend(tokens), self.backbone.values(tokens)
        logits = self.backbone.readout(pool(softmax_weights(attention), values))
        attributes = attribute_scores(attention, values)

        spatial = logits.new_zeros(())
        if batch.coords is not None and batch.strides is not None:
            around = neighbourhoods(batch.coords[b, real], int(batch.strides[b]))
            spatial = spatial_constraint(attributes[:, 0 if self.symmetric else 1 :], around)
        rank = self._rank(features, attributes, int(batch.labels[b]))
        return F.cross_entropy(logits, batch.labels[b]), spatial, rank

    def _rank(self, features: Tensor, attributes: Tensor, label: int) -> Tensor:
        """Queue the bag's top tile of every class and compare it with an older, opposite one."""
        total = attributes.new_zeros(())
        for c in range(self.backbone.n_classes):
            of_class = label == c
            same, opposite = (
                (self.positive, self.negative) if of_class else (self.negative, self.positive)
            )
            top, tile = attributes[:, c].max(dim=0)
            same.append(c, features[tile])
            if opposite.size(c):
                token = self.backbone.embed(opposite.next(c)[None].to(features))
                attention, values = self.backbone.attend(token), self.backbone.values(token)
                other = attribute_scores(attention, values)[0, c]
                negative_class = c == 0 and not self.symmetric
                total = total + rank_constraint(top, other, of_class, negative_class)
        return total / self.backbone.n_classes
