"""Training-free evidence of every tile for every class: the columns that a head can start from.

The first column sorts tiles as the ranking ``evidence`` does. Each has a root mean square of 1 over
the tiles of a bag, so that a weight means the same in every bag.
"""

from __future__ import annotations

import torch
from torch import Tensor

from foci.backbones import Backbone
from foci.reveal import EmbeddedBag
from foci.reveal.pooled import Candidates, ForwardedCandidates, PooledTiles, pools

EXPONENTS = (0.5, 0.0, 0.25, 0.75, 1.0)
"""Powers of the attention weight; that of ``evidence`` first."""

POOLED = tuple(f"{part} {a:g}" for part in ("tile", "row") for a in EXPONENTS)
"""Columns of a pooling classifier; see :func:`evidence_columns`."""

FORWARDED = ("tile",)
"""The only column of any other classifier."""


def column_names(backbone: Backbone) -> tuple[str, ...]:
    """Names of the columns that a classifier has."""
    return POOLED if pools(backbone) else FORWARDED


def evidence_columns(backbone: Backbone, tokens: Tensor) -> Tensor:
    r"""Columns ``[N, C, P]`` of one bag, in float64; P is the number of :func:`column_names`.

    With the log-odds :math:`m_{ic}` of class c for the tile alone and N times its attention
    weight, :math:`w_{ic}` (in row r: :math:`w_{ri}`), a pooling classifier has, for every exponent
    :math:`\alpha` of :data:`EXPONENTS`,

    .. math:: w_{ic}^\alpha\, m_{ic} \qquad\text{and}\qquad \sum_r w_{ri}^\alpha\, c_{irc}

    where :math:`c_{irc}` is the part of row r in the log-odds if these were linear in the pooled
    values: the tile's value times their gradient at the full bag, and the row's share of what is
    then left over. Any other classifier has :math:`m_{ic}` alone.
    """
    candidates: Candidates = ForwardedCandidates(backbone, tokens)
    if pools(backbone):
        candidates = PooledTiles(backbone, tokens)
    index = torch.arange(len(tokens), device=tokens.device)
    nothing = torch.zeros_like(index, dtype=torch.bool)
    return _columns(candidates, candidates.adding(nothing, index))


def columns_of(bag: EmbeddedBag) -> Tensor:
    """:func:`evidence_columns` of a bag, computed once for all rankings that need them."""
    return bag.cached("evidence columns", lambda: _columns(bag.candidates(), bag.single_tiles()))


def _columns(candidates: Candidates, alone: Tensor) -> Tensor:
    """Columns of a bag, from the logits ``[N, C]`` of single tiles."""
    columns = [log_odds(alone)]
    if isinstance(candidates, PooledTiles):
        weights = len(alone) * attention_shares(candidates)
        columns = [weights**a * columns[0] for a in EXPONENTS] + _row_columns(candidates)
    stacked = torch.stack(columns, dim=-1)
    size = stacked.square().mean(dim=0, keepdim=True).sqrt()
    return stacked / size.clamp_min(torch.finfo(stacked.dtype).tiny)


def log_odds(logits: Tensor) -> Tensor:
    r"""Log-odds of every class, ``[..., C]`` to ``[..., C]`` in float64.

    .. math:: m_c = \ell_c - \log \sum_{c' \ne c} e^{\ell_{c'}}

    >>> log_odds(torch.tensor([2.0, -1.0]))
    tensor([ 3., -3.], dtype=torch.float64)
    """
    logits = logits.double()
    every = logits.unsqueeze(-2).expand(*logits.shape, logits.shape[-1])
    return logits - torch.logsumexp(every.masked_fill(_diagonal(logits), -torch.inf), dim=-1)


def attention_shares(candidates: PooledTiles) -> Tensor:
    r"""Full-bag attention weights ``[N, C]``, rows by their share in the logit of a class.

    .. math:: w_{ic} = \sum_r \omega_{cr} w_{ri}
    """
    return candidates.weights() @ candidates.row_shares().T


def _diagonal(logits: Tensor) -> Tensor:
    return torch.eye(logits.shape[-1], dtype=torch.bool, device=logits.device)


def _row_columns(candidates: PooledTiles) -> list[Tensor]:
    """Parts of the log-odds row by row, under every power of the row's weights."""
    weights, shares = candidates.weights(), candidates.row_shares()  # [N, R], [C, R]
    full = candidates.full().double()
    others = full.expand(len(full), -1).masked_fill(_diagonal(full), -torch.inf)
    slopes = candidates.slopes  # [C, R, dv]
    slopes = slopes - torch.einsum("cb,brv->crv", torch.softmax(others, dim=-1), slopes)
    values = candidates.values.expand(-1, slopes.shape[1], -1)
    parts = torch.einsum("nrv,crv->ncr", values, slopes)
    left = log_odds(full) - torch.einsum("nr,ncr->c", weights, parts)
    parts = parts + left[:, None] * shares
    weights = len(weights) * weights.unsqueeze(1)
    return [(weights**a * parts).sum(dim=-1) for a in EXPONENTS]
