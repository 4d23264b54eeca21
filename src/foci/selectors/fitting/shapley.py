"""Regression on Shapley values: what a tile adds to random subsets, without listing them."""

from __future__ import annotations

import torch
from torch import Tensor

from foci.selectors.evidence.columns import log_odds
from foci.selectors.fitting.batch import GatedBatch
from foci.selectors.gated.base import GatedBackbone


def subset_sizes(n_tiles: Tensor, generator: torch.Generator) -> Tensor:
    r"""Sizes ``[B]`` of random subsets, drawn as the Shapley kernel weighs them.

    .. math:: P(s) \propto \frac{1}{s\,(N - s)}, \qquad s = 1 \dots N - 1

    A bag of one tile has no proper subset and gets 1.
    """
    sizes = []
    for n in n_tiles.tolist():
        s = torch.arange(1, max(n, 2), dtype=torch.float64)
        chances = 1 / (s * (max(n, 2) - s))
        sizes.append(1 + int(torch.multinomial(chances, 1, generator=generator)))
    return torch.tensor(sizes, device=n_tiles.device)


def shapley(
    batch: GatedBatch,
    scores: Tensor,
    gated: GatedBackbone,
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""Squared error of an additive model of the log-odds, on one random subset per bag, ``[B]``.

    .. math:: \Big(m(\mathcal{N}) - m(S) - \frac1N \sum_{i \notin S} a_i\Big)^2

    with the target's log-odds m. Sizes come from :func:`subset_sizes`, and all subsets of a size
    are alike: the scores learn N times the contributions of an additive model that is exact for the
    full bag and weighs subsets as Shapley values do. A bag without tiles, to which Shapley values
    refer, has no answer. The classifier passes no gradient.

    Args:
        batch: The bags.
        scores: ``[B, N]``.
        gated: The gated classifier.
        generator: Draws the subsets; None for the same ones every time.
    """
    if generator is None:
        generator = torch.Generator().manual_seed(0)
    sizes = subset_sizes(batch.n_tiles, generator)
    noise = torch.rand(batch.mask.shape, generator=generator, dtype=torch.float64)
    noise = noise.to(batch.mask.device).masked_fill(~batch.mask, torch.inf)
    chosen = (noise.argsort(dim=-1).argsort(dim=-1) < sizes[:, None]) & batch.mask
    with torch.no_grad():
        part = log_odds(gated.logits(batch.tiles, batch.mask, chosen.to(scores.dtype)))
        lost = (log_odds(batch.full) - part).gather(-1, batch.targets[:, None]).squeeze(-1)
    added = (scores * (batch.mask & ~chosen)).sum(dim=-1) / batch.n_tiles
    return (lost.to(scores.dtype) - added).square()
