"""Rank by what the classifier says of every tile, or what a selector has learned of it.

The classifier's own scores, such as attention logits; its prediction for the tile alone, with or
without the attention weight; a trained selector. ``budget`` is the most tokens that are forwarded
at once; it has no effect for pooling classifiers.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from foci.backbones import Backbone, CallableBackbone
from foci.backbones.base import declared
from foci.backbones.freezing import frozen
from foci.errors import FociError
from foci.rankings.registry import ranking
from foci.reveal import EmbeddedBag
from foci.reveal.pooled import BUDGET
from foci.selectors.evidence import attention_shares, columns_of
from foci.selectors.selector import FittedSelector, Selector


@ranking("native", needs=("tile score",))
def native(bag: EmbeddedBag) -> Tensor:
    """The classifier's own tile scores, as in the paper's ranking-score table.

    Attention logits before the softmax (ABMIL, CLAM-SB, ASMIL, MHIM-MIL), their mean over the
    branches (ACMIL), the largest attribute score over the classes (AttriMIL), attention to the
    critical tile (DSMIL), the score by which tiles compete (max pooling, ``MIL_fc``). Where there
    is none, a documented proxy: for TransMIL the dot product of tile and CLS token after the
    encoder, for mean pooling the tile's own logit of the predicted class.
    """
    if bag.pooled and declared(bag.backbone, "mean-attention"):
        return bag.pooled.mean_attention()
    return bag.backbone.scores(bag.tokens)


@ranking("single-tile", needs=("target",))
def single_tile(bag: EmbeddedBag, *, budget: int = BUDGET) -> Tensor:
    r"""The target's probability when the tile is the whole bag, :math:`p_t(\{i\})`."""
    return bag.probability(bag.single_tiles(budget))


@ranking("evidence", needs=("target",))
def evidence(bag: EmbeddedBag, *, budget: int = BUDGET) -> Tensor:
    r"""Log-odds of the tile alone, times the root of its attention weight where there is pooling.

    .. math:: s_i = \sqrt{w_i}\, m_i, \qquad
       m_i = \ell_t(\{i\}) - \log \sum_{c \ne t} e^{\ell_c(\{i\})}, \qquad
       w_i = \sum_r \omega_{tr} w_{ri}

    with the softmax weights :math:`w_{ri}` of the full bag; a classifier without pooling has
    :math:`w_i = 1`. A row counts as much as it moves the target's logit: with the pooled value
    :math:`z_r` of row r,

    .. math:: \omega_{tr} = \frac{\lVert \partial \ell_t / \partial z_r \rVert}
       {\sum_{r'} \lVert \partial \ell_t / \partial z_{r'} \rVert}

    which is 1 for the only row (ABMIL), 1/R for branches that are averaged (ACMIL), and 1 for the
    row of the target where every class has its own (AttriMIL, CLAM-MB). The score lies halfway
    between :math:`m_i`, the order of ``single-tile``, and :math:`w_i m_i`, the tile's part in the
    log-odds of a bag with a linear head (``minimal``).

    Margins are in float64, so that tiles do not tie where their probabilities round to 1. Among the
    training-free rankings tried, this one gave the smallest decisive sets on validation slides.

    A function is asked about one set of tiles at a time. Above 4,096 tiles it is asked about groups
    of neighbours in the file first, and tile by tile in the best of them.
    """
    if in_groups(bag.backbone, len(bag)):
        return _best_groups_first(bag)
    margins = bag.log_odds(bag.single_tiles(budget))
    if bag.pooled is None:
        return margins
    return attention_shares(bag.pooled)[:, bag.target].sqrt() * margins


ONE_BY_ONE = 4096
"""Tiles of a slide up to which a function is asked about each of them."""

_GROUPS, _IN_BEST = 1024, 2048


def in_groups(backbone: Backbone, n_tiles: int) -> bool:
    """Whether ``evidence`` tries groups of tiles first, and single tiles in the best of them."""
    return isinstance(backbone, CallableBackbone) and n_tiles > ONE_BY_ONE


def _best_groups_first(bag: EmbeddedBag) -> Tensor:
    """Log-odds of single tiles in the best groups; all others below them, by their group."""
    every = torch.arange(len(bag), device=bag.features.device)
    groups = torch.tensor_split(every, _GROUPS)
    with frozen(bag.backbone):
        alone = torch.stack([bag.backbone(bag.features[group]) for group in groups])
        ranks = bag.log_odds(alone).argsort(descending=True).argsort()  # 0 is the best
        sizes = torch.tensor([len(group) for group in groups], device=every.device)
        rank = ranks.repeat_interleave(sizes)
        best = rank.argsort(stable=True)[:_IN_BEST]
        best = every[rank <= rank[best[-1]]]
        single = [bag.backbone(bag.features[i : i + 1]) for i in best.tolist()]
        margins = bag.log_odds(torch.stack(single))
    scores = margins.min() - 1.0 - rank.double()
    scores[best] = margins
    return scores


@ranking("selector")
def selector(bag: EmbeddedBag, *, selector: Callable[[Tensor], Tensor]) -> Tensor:
    """Score every token with a selector head.

    Args:
        bag: The bag.
        selector: Maps tokens ``[N, d]`` to one score per tile, ``[N]`` or ``[N, 1]``, or to one
            score per tile and class, ``[N, C]``, of which the target's column is taken. A module
            is used in eval mode. A fitted selector refuses any classifier but its own.
    """
    owned = selector.best if isinstance(selector, FittedSelector) else selector
    if isinstance(owned, Selector) and owned.backbone is not bag.backbone:
        owned.check(bag.backbone)
    with frozen(*[selector] if isinstance(selector, nn.Module) else []):
        if isinstance(owned, Selector):
            scores = owned(bag.tokens, columns_of(bag) if owned.reads_evidence else None)
        else:
            scores = torch.as_tensor(selector(bag.tokens))
    n, c = len(bag), bag.backbone.n_classes
    if scores.shape == (n, c):
        return scores[:, bag.target]
    if scores.shape not in ((n,), (n, 1)):
        raise FociError(
            f"selector of slide {bag.slide_id}",
            f"returned shape {list(scores.shape)} for {n} tiles and {c} classes",
            f"return [{n}], [{n}, 1] or [{n}, {c}]",
        )
    return scores.reshape(n)
