"""CLAM's loss: bag loss plus clustering of tiles by their attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from foci.backbones.batch import Batch
from foci.backbones.layers.softmax_pooling import pool, softmax_weights
from foci.backbones.objectives.base import Objective
from foci.backbones.objectives.smooth_svm import smooth_top1_svm
from foci.errors import FociError

if TYPE_CHECKING:
    from foci.backbones.models.clam import CLAM

Loss = Literal["ce", "svm"]

_LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "ce": F.cross_entropy,
    "svm": smooth_top1_svm,
}


class InstanceClustering(Objective):
    r"""Bag loss plus instance clustering of the most and least attended tiles.

    .. math:: L = w\,L_\mathrm{bag} + (1 - w)\,L_\mathrm{inst}

    For a bag of class y with n tiles and :math:`k = \min(B, n)`, instance classifier y learns to
    call the k most attended tokens 1 and the k least attended 0. With mutually exclusive classes
    (subtyping) every other instance classifier learns to call the k most attended tokens 0, and
    :math:`L_\mathrm{inst}` is the mean over the classes. The choice of tiles is not
    differentiated; the gradient reaches the projection through the chosen tokens. Both losses are
    averaged over the bags of a batch.

    Args:
        backbone: The CLAM to train.
        subtyping: Whether the classes exclude each other (NSCLC, BRCA: yes; normal against
            tumour: no).
        bag_weight: w.
        n_instances: B.
        instance_loss: ``"svm"`` (smooth top-1 SVM, as the authors recommend) or ``"ce"``.
        bag_loss: ``"ce"`` or ``"svm"``.
    """

    backbone: CLAM

    def __init__(
        self,
        backbone: CLAM,
        *,
        subtyping: bool = False,
        bag_weight: float = 0.7,
        n_instances: int = 8,
        instance_loss: Loss = "svm",
        bag_loss: Loss = "ce",
    ) -> None:
        super().__init__(backbone)
        if n_instances < 1:
            raise FociError("n_instances", f"is {n_instances}", "choose at least one tile")
        self.subtyping = subtyping
        self.bag_weight = bag_weight
        self.n_instances = n_instances
        self.instance_loss = _loss("instance_loss", instance_loss)
        self.bag_loss = _loss("bag_loss", bag_loss)

    def forward(self, batch: Batch) -> Tensor:
        """Weighted bag and instance loss, each averaged over the bags."""
        tokens = self.backbone.embed(batch.features)
        attention = self.backbone.attend(tokens)
        weights = softmax_weights(attention, batch.mask, plus_one=self.backbone.plus_one)
        logits = self.backbone.readout(pool(weights, self.backbone.values(tokens)))
        instance = torch.stack(
            [
                self.cluster(tokens[b, real], attention[b, real], int(batch.labels[b]))
                for b, real in enumerate(batch.mask)
            ]
        )
        return self.named_terms(
            bag=self.bag_weight * self.bag_loss(logits, batch.labels),
            instance=(1 - self.bag_weight) * instance.mean(),
        )

    def cluster(self, tokens: Tensor, attention: Tensor, label: int) -> Tensor:
        """Instance loss of one bag.

        Args:
            tokens: ``[n, d]``, real tiles only.
            attention: ``[n, R]`` logits: one row for all classes, or one for each.
            label: Class y of the bag.
        """
        k = min(self.n_instances, len(tokens))
        rows = attention.detach().expand(-1, self.backbone.n_classes)
        total = tokens.new_zeros(())
        for c, classifier in enumerate(self.backbone.instance_classifiers):
            most = rows[:, c].topk(k).indices
            if c == label:
                least = rows[:, c].topk(k, largest=False).indices
                chosen = torch.cat([most, least])
                targets = torch.arange(2 * k, device=tokens.device).lt(k).long()
            elif self.subtyping:
                chosen, targets = most, torch.zeros_like(most)
            else:
                continue
            total = total + self.instance_loss(classifier(tokens[chosen]), targets)
        return total / self.backbone.n_classes if self.subtyping else total


def _loss(option: str, name: str) -> Callable[[Tensor, Tensor], Tensor]:
    if name not in _LOSSES:
        raise FociError(option, f"{name!r} is not a loss", f"choose one of {', '.join(_LOSSES)}")
    return _LOSSES[name]
