"""DSMIL's loss: sigmoid cross-entropy of the bag and of its best tiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from foci.backbones.batch import Batch
from foci.backbones.objectives.base import Objective

if TYPE_CHECKING:
    from foci.backbones.models.instance.dsmil import DSMIL


class DualStream(Objective):
    r"""Both streams learn which classes are present, each output by a sigmoid of its own.

    .. math:: L = w\,\mathrm{BCE}(u, y) + (1 - w)\,\mathrm{BCE}\big(\max_i s_i,\, y\big)

    with the outputs u of the bag, the tile classifier's scores :math:`s_i`, and y = 1 for the
    label's output and 0 for the others; a negative class has no output, so all are 0. Averaged
    over outputs and bags.

    Args:
        backbone: The DSMIL to train.
        bag_weight: w, a half as published.
    """

    backbone: DSMIL

    def __init__(self, backbone: DSMIL, *, bag_weight: float = 0.5) -> None:
        super().__init__(backbone)
        self.bag_weight = bag_weight

    def forward(self, batch: Batch) -> Tensor:
        """Weighted loss of both streams."""
        tokens = self.backbone.embed(batch.features)
        outputs = self.backbone.outputs(tokens, batch.mask)
        tiles = self.backbone.tile_classifier(tokens)
        best = tiles.masked_fill(~batch.mask.unsqueeze(-1), -torch.inf).amax(dim=1)
        present = self._present(batch.labels).to(outputs.dtype)
        return self.named_terms(
            bag=self.bag_weight * F.binary_cross_entropy_with_logits(outputs, present),
            tiles=(1 - self.bag_weight) * F.binary_cross_entropy_with_logits(best, present),
        )

    def _present(self, labels: Tensor) -> Tensor:
        """Labels ``[B]`` to ``[B, K]``: which outputs should be on."""
        shift = 1 if self.backbone.negative and self.backbone.n_outputs == 1 else 0
        index = torch.arange(self.backbone.n_outputs, device=labels.device)
        return labels.unsqueeze(-1) == index + shift
