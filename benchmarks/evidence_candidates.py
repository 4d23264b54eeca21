"""Training-free rankings among which ``evidence`` was chosen on validation slides.

All start from the log-odds margin of the target for every tile alone, in float64, and for pooling
classifiers from the tile's attention weight in the full bag.
"""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor

from foci.rankings.registry import ranking
from foci.reveal import EmbeddedBag
from foci.reveal.candidates.pooled import PooledCandidates

POOLED = (
    "weight-x-margin",
    "weight-x-excess",
    "root-weight-x-margin",
    "rank-average",
    "rank-product",
    "z-average",
    "reciprocal-rank",
)
EVERY = ("margin",)


def margins(bag: EmbeddedBag) -> Tensor:
    """Log-odds of the target for every tile alone, ``[N]`` in float64."""
    return bag.log_odds(bag.single_tiles())


def weights(bag: EmbeddedBag) -> Tensor:
    """Share of every tile in the full-bag attention that moves the target's logit, ``[N]``."""
    candidates = cast("PooledCandidates", bag.candidates())
    return torch.softmax(candidates.attention, dim=0) @ candidates.row_shares()[bag.target]


def attention_x_evidence(bag: EmbeddedBag) -> Tensor:
    """Scores of the ranking of that name."""
    from foci.rankings.evidence.attention_x_evidence import attention_x_evidence

    return attention_x_evidence(bag)


def places(scores: Tensor) -> Tensor:
    """Position of every tile from 1 (first); ties share the mean position."""
    above = (scores[None, :] > scores[:, None]).sum(dim=1)
    equal = (scores[None, :] == scores[:, None]).sum(dim=1)
    return above + (equal + 1) / 2


def z_scores(scores: Tensor) -> Tensor:
    """Scores with mean 0 and standard deviation 1; all 0 if they are equal."""
    spread = scores.std(unbiased=False)
    return (scores - scores.mean()) / spread if spread > 0 else torch.zeros_like(scores)


@ranking("margin", needs=("target",))
def margin(bag: EmbeddedBag) -> Tensor:
    """Log-odds of the tile alone: sorts as ``single-tile``, without ties."""
    return margins(bag)


@ranking("weight-x-margin", needs=("pooling", "target"))
def weight_x_margin(bag: EmbeddedBag) -> Tensor:
    """Attention weight times log-odds of the tile alone."""
    return weights(bag) * margins(bag)


@ranking("weight-x-excess", needs=("pooling", "target"))
def weight_x_excess(bag: EmbeddedBag) -> Tensor:
    """Attention weight times the log-odds above those of a probability of 0.9."""
    return weights(bag) * (margins(bag) - math.log(9.0))


@ranking("root-weight-x-margin", needs=("pooling", "target"))
def root_weight_x_margin(bag: EmbeddedBag) -> Tensor:
    """Square root of the attention weight times log-odds of the tile alone."""
    return weights(bag).sqrt() * margins(bag)


@ranking("rank-average", needs=("pooling", "target"))
def rank_average(bag: EmbeddedBag) -> Tensor:
    """Mean position by margin and by attention times evidence."""
    return -(places(margins(bag)) + places(attention_x_evidence(bag)))


@ranking("rank-product", needs=("pooling", "target"))
def rank_product(bag: EmbeddedBag) -> Tensor:
    """Product of the positions by margin and by attention times evidence."""
    return -(places(margins(bag)).log() + places(attention_x_evidence(bag)).log())


@ranking("reciprocal-rank", needs=("pooling", "target"))
def reciprocal_rank(bag: EmbeddedBag) -> Tensor:
    """Sum of the inverse positions by margin and by attention times evidence."""
    return 1 / places(margins(bag)) + 1 / places(attention_x_evidence(bag))


@ranking("z-average", needs=("pooling", "target"))
def z_average(bag: EmbeddedBag) -> Tensor:
    """Sum of the z-scores of margin and attention times evidence."""
    return z_scores(margins(bag)) + z_scores(attention_x_evidence(bag))
