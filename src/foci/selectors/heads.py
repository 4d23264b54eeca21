"""Selector heads: small networks that score a tile from its token, and from its evidence."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foci.selectors.gated import Tiles

HIDDEN = 256
"""Hidden width of the head, unless a recipe says otherwise."""

PAPER_PARAMETERS = 132_609
"""Size of the paper's head, on any of its classifiers."""


def paper_width(d: int) -> int:
    r"""Hidden width at which a head with one score has the paper's number of parameters.

    LayerNorm, two linear layers and their biases are

    .. math:: 2d + (dh + h) + (h + 1) = (d + 2)(h + 2) - 3

    parameters on tokens of width d. Width and token width may be exchanged: :math:`512 \to 256` and
    :math:`256 \to 512` have 132,609 both. Solved for h and rounded, for other token widths the
    number is reached to within :math:`d / 2 + 1`.

    >>> [paper_width(d) for d in (512, 256, 384)]
    [256, 512, 342]
    """
    return max(1, round((PAPER_PARAMETERS + 3) / (d + 2)) - 2)


class SelectorHead(nn.Module):
    r"""One score per tile, or one per tile and class.

    .. math:: a_i = W_2\,\mathrm{GELU}(W_1\,\mathrm{LN}(t_i) + b_1) + b_2

    The paper's head has one output and 132,609 parameters; see :func:`paper_width`. A
    class-conditional head has one output per class, so that the tiles that support one class need
    not be those that support another.

    >>> sum(p.numel() for p in SelectorHead(512).parameters())
    132609
    """

    def __init__(self, d: int, outputs: int = 1, hidden: int = HIDDEN) -> None:
        super().__init__()
        self.d, self.outputs, self.hidden = d, outputs, hidden
        self.norm = nn.LayerNorm(d)
        self.widen = nn.Linear(d, hidden)
        self.score = nn.Linear(hidden, outputs)

    def forward(self, tokens: Tensor, evidence: Tensor | None = None) -> Tensor:
        """Tokens ``[..., N, d]`` to all scores, ``[..., N, outputs]``; evidence is not read."""
        scores: Tensor = self.score(F.gelu(self.widen(self.norm(tokens))))
        return scores


class EvidenceHead(nn.Module):
    r"""A mix of evidence columns, and a correction from the token.

    .. math:: a_{ic} = \sum_p \beta_p\, e_{icp} + h_c(t_i)

    with the columns :math:`e_{icp}` of :func:`~foci.selectors.evidence.evidence_columns` and the
    paper's head h. Only the first column, evidence, has a weight :math:`\beta` at first, and the
    last layer of h is 0: before the first step the order is that of evidence. :math:`\beta` is no
    parameter, see :func:`~foci.selectors.criterion.tune`; weight decay draws h back to 0. A
    ``hidden`` width of 0 leaves h out.
    """

    mix: Tensor

    def __init__(self, d: int, outputs: int, hidden: int, columns: int) -> None:
        super().__init__()
        self.d, self.outputs, self.hidden, self.columns = d, outputs, hidden, columns
        self.register_buffer("mix", torch.eye(columns)[0])
        self.correction = SelectorHead(d, outputs, hidden) if hidden else None
        if self.correction is not None:
            nn.init.zeros_(self.correction.score.weight)
            nn.init.zeros_(self.correction.score.bias)

    def forward(self, tokens: Tensor, evidence: Tensor) -> Tensor:
        """Tokens ``[..., N, d]`` and columns ``[..., N, C, P]`` to scores ``[..., N, C]``."""
        scores: Tensor = evidence @ self.mix.to(evidence.dtype)
        if self.correction is not None:
            scores = scores + self.correction(tokens).to(evidence.dtype)
        return scores


Head = SelectorHead | EvidenceHead


def scores_at(head: Head, tiles: Tiles, targets: Tensor) -> Tensor:
    """Scores ``[B, N]`` of prepared bags: the only ones, or those of the target classes ``[B]``."""
    tokens = tiles["tokens"]
    scores: Tensor = head(tokens, tiles.get("evidence"))
    if scores.shape[-1] > 1:
        scores = scores.gather(-1, targets[:, None, None].expand(*scores.shape[:2], 1))
    return scores.squeeze(-1).to(tokens.dtype)
