"""Rank by attention weight times the logits of the tile alone."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor

from foci.rankings.registry import ranking
from foci.reveal import EmbeddedBag
from foci.reveal.candidates.pooled import PooledCandidates


@ranking("attention-x-evidence", needs=("pooling", "target"))
def attention_x_evidence(bag: EmbeddedBag) -> Tensor:
    r"""Attention weight times the logits of the tile alone, target against its rivals.

    .. math:: s_i = E_{it} - \sum_{c \ne t} \pi_c E_{ic}, \qquad
       E_{ic} = \Big(\sum_r \omega_{cr} w_{ri}\Big)\, \ell_c(\{i\}), \qquad
       \pi_c = \frac{p_c}{1 - p_t}

    with the softmax weights :math:`w_{ri}` of the full bag, row by row, and its probabilities p.
    A row counts for class c as much as it moves the logit of c: with the pooled value
    :math:`z_r` of row r,

    .. math:: \omega_{cr} = \frac{\lVert \partial \ell_c / \partial z_r \rVert}
       {\sum_{r'} \lVert \partial \ell_c / \partial z_{r'} \rVert}

    which is 1 for the only row (ABMIL), 1/R for branches that are averaged (ACMIL), and 1 for the
    row of class c where every class has its own (AttriMIL, CLAM-MB). With a linear head these
    classifiers are additive, :math:`\ell_c = \sum_i E_{ic}`, and for two classes the scores add up
    to the log-odds of the target.
    """
    candidates = cast("PooledCandidates", bag.candidates())
    evidence = (
        candidates.weights() @ candidates.row_shares().T * bag.single_tiles().double()
    )  # [N, C]
    rivals = torch.softmax(bag.logits.double(), dim=-1)
    rivals[bag.target] = 0.0
    rivals = rivals / rivals.sum().clamp_min(torch.finfo(rivals.dtype).tiny)
    return evidence[:, bag.target] - evidence @ rivals
