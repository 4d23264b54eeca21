"""Rank by what the classifier predicts of a tile alone, with or without its attention weight."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor

from foci.rankings.registry import ranking
from foci.reveal import EmbeddedBag
from foci.reveal.pooled import BUDGET, PooledCandidates, pools
from foci.selectors.evidence import attention_shares


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
    evidence = attention_shares(candidates) * bag.single_tiles().double()  # [N, C]
    rivals = torch.softmax(bag.logits.double(), dim=-1)
    rivals[bag.target] = 0.0
    rivals = rivals / rivals.sum().clamp_min(torch.finfo(rivals.dtype).tiny)
    return evidence[:, bag.target] - evidence @ rivals


@ranking("single-tile", needs=("target",))
def single_tile(bag: EmbeddedBag, *, budget: int = BUDGET) -> Tensor:
    r"""The target's probability when the tile is the whole bag, :math:`p_t(\{i\})`.

    Args:
        bag: The bag.
        budget: Most tokens forwarded at once; has no effect for pooling classifiers.
    """
    return bag.probability(bag.single_tiles(budget))


@ranking("evidence", needs=("target",))
def evidence(bag: EmbeddedBag, *, budget: int = BUDGET) -> Tensor:
    r"""Log-odds of the tile alone, times the root of its attention weight where there is pooling.

    .. math:: s_i = \sqrt{w_i}\, m_i, \qquad
       m_i = \ell_t(\{i\}) - \log \sum_{c \ne t} e^{\ell_c(\{i\})}, \qquad
       w_i = \sum_r \omega_{tr} w_{ri}

    with the softmax weights :math:`w_{ri}` of the full bag and the share :math:`\omega_{tr}` of row
    r in the target's logit, both as in ``attention-x-evidence``; :math:`w_i = 1` for a classifier
    without pooling. It lies halfway between :math:`m_i`, the order of ``single-tile``, and
    :math:`w_i m_i`, the tile's part in the log-odds of a bag with a linear head.

    Margins are in float64, so that tiles do not tie where their probabilities round to 1. Among the
    training-free rankings tried, this one gave the smallest decisive sets on validation slides.

    Args:
        bag: The bag.
        budget: Most tokens forwarded at once; has no effect for pooling classifiers.
    """
    margins = bag.log_odds(bag.single_tiles(budget))
    if not pools(bag.backbone):
        return margins
    candidates = cast("PooledCandidates", bag.candidates())
    return attention_shares(candidates)[:, bag.target].sqrt() * margins
