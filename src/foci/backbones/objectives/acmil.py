"""ACMIL's loss: slide and branch cross-entropy, diversity, and masked top-K tiles (STKIM)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from foci.backbones.batch import Batch
from foci.backbones.layers.softmax_pooling import pool
from foci.backbones.objectives.base import Objective
from foci.backbones.objectives.random_subset import choose
from foci.errors import FociError

if TYPE_CHECKING:
    from foci.backbones.models.acmil import ACMIL, ACMILMultiHead


def stochastic_topk_mask(
    logits: Tensor, mask: Tensor, *, n_mask: int = 10, mask_drop: float = 0.6
) -> Tensor:
    r"""Stochastic top-K instance masking (STKIM): hide some of every row's strongest tiles.

    Among the :math:`m = \min(n_\mathrm{mask}, N)` tiles with the highest logits
    :math:`\lfloor m \cdot \mathrm{mask\_drop} \rfloor` are chosen at random, row by row and bag
    by bag, but never more than :math:`N - 1`: a bag keeps at least one tile even at a drop of 1.

    Args:
        logits: Attention logits ``[..., N, R]``.
        mask: ``[..., N]`` bool, True where a tile is real.
        n_mask: How many of the strongest tiles may be hidden.
        mask_drop: Share of them that is hidden.

    Returns:
        ``[..., N, R]`` bool, True where a tile is hidden from a row.
    """
    n_tiles = mask.sum(dim=-1)[..., None, None]
    n_top = n_tiles.clamp(max=n_mask)
    shares = [int(top * mask_drop) for top in range(n_mask + 1)]
    n_hidden = torch.tensor(shares, device=logits.device)[n_top].minimum(n_tiles - 1)
    real = logits.masked_fill(~mask.unsqueeze(-1), -torch.inf)
    place = real.argsort(dim=-2, descending=True, stable=True).argsort(dim=-2)
    return choose(place < n_top, n_hidden, dim=-2)


def diversity(weights: Tensor, branches: int) -> Tensor:
    r"""Mean cosine similarity of the branches' attention maps: 0 if disjoint, 1 if equal.

    .. math:: \frac{2}{K(K-1)} \sum_{r<r'} \cos(\alpha_r, \alpha_{r'})

    for the attention maps :math:`\alpha_r` over the tiles; with several heads per branch the maps
    of the same head are compared and averaged, and so are the bags.

    Args:
        weights: Attention maps ``[..., N, R]``, rows ordered by branch, then by head.
        branches: Number of branches K, at least 2.

    >>> same, apart = torch.tensor([[0.5, 0.5], [0.5, 0.5]]), torch.eye(2)
    >>> round(diversity(same, 2).item(), 6), diversity(apart, 2).item()
    (1.0, 0.0)
    """
    maps = F.normalize(torch.unflatten(weights, -1, (branches, -1)), dim=-3)  # [..., N, K, heads]
    cosines = torch.einsum("...nrh,...nsh->...hrs", maps, maps)
    upper = torch.triu_indices(branches, branches, offset=1, device=weights.device)
    return cosines[..., upper[0], upper[1]].mean()


class ACMILObjective(Objective):
    r"""Slide loss, branch losses and diversity, with STKIM (Zhang et al. 2024).

    .. math:: L = \mathrm{CE}(\ell, y) + \frac1K \sum_r \mathrm{CE}(\ell_r, y)
       + \frac{2}{K(K-1)} \sum_{r<r'} \cos(\alpha_r, \alpha_{r'})

    averaged over the bags. With a single branch only the first term is left. All terms see the
    bag without the tiles that :func:`stochastic_topk_mask` hides; a backbone in ``eval`` mode
    sees every tile, so that its loss on a validation set is not random.

    Args:
        backbone: ACMIL in either form.
        n_mask: How many of the strongest tiles of a row may be hidden; 0 turns STKIM off.
        mask_drop: Share of them that is hidden.
    """

    backbone: ACMIL | ACMILMultiHead

    def __init__(
        self, backbone: ACMIL | ACMILMultiHead, *, n_mask: int = 10, mask_drop: float = 0.6
    ) -> None:
        if n_mask < 0:
            raise FociError("n_mask", f"{n_mask} is negative", "choose 0 (off) or more")
        if not 0 <= mask_drop <= 1:
            raise FociError("mask_drop", f"{mask_drop} is not a share", "choose between 0 and 1")
        super().__init__(backbone)
        self.n_mask, self.mask_drop = n_mask, mask_drop

    def forward(self, batch: Batch) -> Tensor:
        """Mean over the batch."""
        model, n_branches = self.backbone, self.backbone.n_branches
        tokens = model.embed(batch.features)
        logits = model.attend(tokens)
        absent = ~batch.mask.unsqueeze(-1)
        if model.training and self.n_mask:
            absent = absent | stochastic_topk_mask(
                logits, batch.mask, n_mask=self.n_mask, mask_drop=self.mask_drop
            )
        weights = torch.softmax(logits.masked_fill(absent, -torch.inf), dim=-2)
        pooled = pool(weights, model.values(tokens))
        terms = {"bag": F.cross_entropy(model.readout(pooled), batch.labels)}
        if n_branches > 1:
            branch_logits = model.branch_logits(pooled).flatten(0, 1)
            branch_labels = batch.labels.repeat_interleave(n_branches)
            terms["branch"] = F.cross_entropy(branch_logits, branch_labels)
            terms["diversity"] = diversity(weights, n_branches)
        return self.named_terms(**terms)
