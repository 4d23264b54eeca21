"""The selector objective: a weighted sum of losses on the kept and the dropped tiles."""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat
from torch import Tensor

from foci.selectors.fitting import losses
from foci.selectors.fitting.batch import GatedBatch
from foci.selectors.gated.base import GatedBackbone
from foci.selectors.gates import Gate


class Weights(BaseModel):
    r"""Weights :math:`\lambda` of the losses, and two thresholds; the defaults are the paper's.

    Attributes:
        suff: Cross-entropy of the kept tiles.
        hinge: Confidence of the kept tiles.
        excl: Confidence of the dropped tiles.
        contig: Spread of the kept tiles.
        budget: Sum of the gates.
        entropy: Entropy of a soft gate (0.1 in FOCI-Soft).
        flip: Decision of the dropped tiles; see :func:`~foci.selectors.fitting.losses.flip`.
        tau: Confidence that the kept tiles should reach.
        beta: Confidence that the dropped tiles may have.
        gap: Lead of another class that the dropped tiles should have, in logits.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    suff: NonNegativeFloat = 0.5
    hinge: NonNegativeFloat = 1.0
    excl: NonNegativeFloat = 0.5
    contig: NonNegativeFloat = 0.01
    budget: NonNegativeFloat = 5e-3
    entropy: NonNegativeFloat = 0.0
    flip: NonNegativeFloat = 0.0
    tau: Annotated[float, Field(gt=0, lt=1)] = 0.9
    beta: Annotated[float, Field(gt=0, lt=1)] = 0.2
    gap: NonNegativeFloat = 1.0

    @property
    def active(self) -> tuple[str, ...]:
        """Names of the losses with a weight above 0."""
        names = ("suff", "hinge", "excl", "contig", "budget", "entropy", "flip")
        return tuple(name for name in names if getattr(self, name) > 0)


def loss_terms(
    batch: GatedBatch,
    scores: Tensor,
    gated: GatedBackbone,
    gate_rule: Gate,
    k: Tensor,
    weights: Weights,
    generator: torch.Generator | None = None,
) -> dict[str, Tensor]:
    r"""Every loss before its weight, averaged over the bags, and ``full`` for monitoring.

    A bag that keeps all its tiles drops none. The full bag then stands in for the dropped tiles,
    which keeps every gradient finite, and its exclusion is 0.

    Args:
        batch: The bags.
        scores: ``[B, N]`` of the selector head.
        gated: The gated classifier.
        gate_rule: Turns scores into gates.
        k: ``[B]`` tiles to keep.
        weights: Of the losses, with their thresholds.
        generator: Noise of a soft gate; None for none.
    """
    mask, targets = batch.mask, batch.targets
    gate = gate_rule(scores, mask, k, generator)
    rest = (1 - gate) * mask
    has_drop = (rest > 0).any(dim=-1)
    keep = gated.logits(batch.tiles, mask, gate)
    drop = gated.logits(batch.tiles, mask, torch.where(has_drop[:, None], rest, mask.to(rest)))
    terms = {
        "suff": losses.sufficiency(keep, targets),
        "hinge": losses.hinge(keep, targets, weights.tau),
        "excl": losses.exclusion(drop, targets, weights.beta, has_drop),
        "contig": losses.contiguity(gate, batch.coords),
        "budget": losses.budget(gate),
        "full": losses.sufficiency(batch.full, targets),
    }
    if weights.entropy > 0:
        terms["entropy"] = losses.entropy(gate, mask)
    if weights.flip > 0:
        terms["flip"] = losses.flip(drop, targets, weights.gap, has_drop)
    return {name: values.mean() for name, values in terms.items()}


def total(terms: dict[str, Tensor], weights: Weights) -> Tensor:
    r"""The selector objective :math:`\sum_j \lambda_j \mathcal{L}_j`; ``full`` is only monitored.

    A term of weight 0 is left out, so that it costs no gradient. If all are 0, so is the
    objective.
    """
    chosen = [
        getattr(weights, name) * value for name, value in terms.items() if name in weights.active
    ]
    return torch.stack(chosen).sum() if chosen else torch.zeros_like(terms["budget"])
