"""Training objective: the loss of a batch, with state that exists only while training.

An EMA teacher, an anchor or a queue belongs to training, not to the frozen model, but a run that
was killed has to resume with it. Objectives are therefore modules of their own: their state dict is
saved beside the weights while training and left out of the finished model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foci.backbones.batch import Batch

if TYPE_CHECKING:
    from foci.backbones.base import Backbone


class Objective(nn.Module):
    """Training loss of a backbone.

    The backbone is kept outside the module tree: the optimizer, the parameter count and the state
    dict of an objective concern only what the objective adds.

    Attributes:
        stages: Names of the consecutive training stages; all but MHIM-MIL have one.
        terms: Loss terms of the last batch by name, for logging.
    """

    stages: ClassVar[tuple[str, ...]] = ("train",)
    backbone: Backbone

    def __init__(self, backbone: Backbone) -> None:
        super().__init__()
        self.__dict__["backbone"] = backbone
        self.terms: dict[str, float] = {}

    def begin_stage(self, stage: str, total_steps: int) -> None:
        """Called once before the first epoch of a stage, with its number of optimizer steps."""

    def begin_epoch(self) -> None:
        """Called before every epoch."""

    def after_step(self) -> None:
        """Called after every optimizer step (EMA updates)."""

    def named_terms(self, **terms: Tensor) -> Tensor:
        """Sum of the loss terms; their values are kept in ``terms``."""
        self.terms = {name: float(value.detach()) for name, value in terms.items()}
        total: Tensor = sum(terms.values())  # type: ignore[assignment]
        return total


class CrossEntropy(Objective):
    r"""Plain cross-entropy on the slide logits: :math:`-\log p_y`."""

    def forward(self, batch: Batch) -> Tensor:
        """Mean over the batch."""
        logits = self.backbone(batch.features, batch.mask)
        return self.named_terms(bag=F.cross_entropy(logits, batch.labels))


# Random subsets of an exact size, for hiding tiles and tokens in training.


def choose(candidates: Tensor, count: Tensor | int, dim: int = -1) -> Tensor:
    """Mark ``count`` of the candidates at random, all subsets of that size being equally likely.

    Args:
        candidates: Bool, True where an entry may be chosen.
        count: How many to choose along ``dim`` (broadcast against ``candidates``); where there
            are fewer candidates, all of them are chosen.
        dim: The dimension along which entries compete.

    Returns:
        Bool of the same shape. Draws from torch's global generator.

    >>> choose(torch.tensor([True, False, True, True]), 2).sum().item()
    2
    """
    keys = torch.rand(candidates.shape, device=candidates.device)
    place = keys.masked_fill(~candidates, torch.inf).argsort(dim=dim).argsort(dim=dim)
    return (place < count) & candidates
