"""Training-free evidence of every tile for every class: the columns that a head can start from.

The first column sorts tiles as the ranking ``evidence`` does. Each has a root mean square of 1 over
the tiles of a bag, so that a weight means the same in every bag.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from foci.backbones import Backbone
from foci.metrics import decisive_k, deletion_drop, faithfulness_auc, msk
from foci.metrics.compare import order_differences
from foci.metrics.inputs import Floats, Integers
from foci.reveal import GRID, KAPPA, EmbeddedBag
from foci.reveal.engines import PooledTiles
from foci.reveal.pooled import ForwardedCandidates, PooledCandidates, pools
from foci.reveal.prefixes import default_counts

EXPONENTS = (0.5, 0.0, 0.25, 0.75, 1.0)
"""Powers of the attention weight; that of ``evidence`` first."""

POOLED = tuple(f"{part} {a:g}" for part in ("tile", "row") for a in EXPONENTS)
"""Columns of a pooling classifier; see :func:`evidence_columns`."""

FORWARDED = ("tile",)
"""The only column of any other classifier."""


def column_names(backbone: Backbone) -> tuple[str, ...]:
    """Names of the columns that a classifier has."""
    return POOLED if pools(backbone) else FORWARDED


def evidence_columns(
    backbone: Backbone,
    tokens: Tensor,
    *,
    alone: Tensor | None = None,
    pooled: PooledCandidates | None = None,
) -> Tensor:
    r"""Columns ``[N, C, P]`` of one bag, in float64; P is the number of :func:`column_names`.

    With the log-odds :math:`m_{ic}` of class c for the tile alone and N times its attention
    weight, :math:`w_{ic}` (in row r: :math:`w_{ri}`), a pooling classifier has, for every exponent
    :math:`\alpha` of :data:`EXPONENTS`,

    .. math:: w_{ic}^\alpha\, m_{ic} \qquad\text{and}\qquad \sum_r w_{ri}^\alpha\, c_{irc}

    where :math:`c_{irc}` is the part of row r in the log-odds if these were linear in the pooled
    values: the tile's value times their gradient at the full bag, and the row's share of what is
    then left over. Any other classifier has :math:`m_{ic}` alone.

    Args:
        backbone: The frozen classifier.
        tokens: ``[N, d]`` of one bag.
        alone: Logits ``[N, C]`` of single tiles, where they are known already.
        pooled: Candidates of the bag, where there are some already.
    """
    if pools(backbone):
        pooled = PooledCandidates(PooledTiles(backbone, tokens)) if pooled is None else pooled
        margins = log_odds(_alone(pooled, tokens) if alone is None else alone)
        weights = len(tokens) * attention_shares(pooled)
        columns = [weights**a * margins for a in EXPONENTS] + _by_rows(pooled)
    else:
        forwarded = ForwardedCandidates(backbone, tokens)
        margins = log_odds(_alone(forwarded, tokens) if alone is None else alone)
        columns = [margins]
    stacked = torch.stack(columns, dim=-1)
    size = stacked.square().mean(dim=0, keepdim=True).sqrt()
    return stacked / size.clamp_min(torch.finfo(stacked.dtype).tiny)


def columns_of(bag: EmbeddedBag) -> Tensor:
    """:func:`evidence_columns` of a bag, computed once for all rankings that need them."""

    def compute() -> Tensor:
        pooled = bag.candidates() if pools(bag.backbone) else None
        return evidence_columns(
            bag.backbone,
            bag.tokens,
            alone=bag.single_tiles(),
            pooled=pooled if isinstance(pooled, PooledCandidates) else None,
        )

    return bag.once("evidence columns", compute)


def log_odds(logits: Tensor) -> Tensor:
    r"""Log-odds of every class, ``[..., C]`` to ``[..., C]`` in float64.

    .. math:: m_c = \ell_c - \log \sum_{c' \ne c} e^{\ell_{c'}}

    >>> log_odds(torch.tensor([2.0, -1.0]))
    tensor([ 3., -3.], dtype=torch.float64)
    """
    logits = logits.double()
    every = logits.unsqueeze(-2).expand(*logits.shape, logits.shape[-1])
    return logits - torch.logsumexp(every.masked_fill(_own(logits), -torch.inf), dim=-1)


def attention_shares(candidates: PooledCandidates) -> Tensor:
    r"""Full-bag attention weights ``[N, C]``, rows by their share in the logit of a class.

    .. math:: w_{ic} = \sum_r \omega_{cr} w_{ri}
    """
    return candidates.weights() @ candidates.row_shares().T


def _own(logits: Tensor) -> Tensor:
    return torch.eye(logits.shape[-1], dtype=torch.bool, device=logits.device)


def _alone(candidates: PooledCandidates | ForwardedCandidates, tokens: Tensor) -> Tensor:
    index = torch.arange(len(tokens), device=tokens.device)
    return candidates.adding(torch.zeros_like(index, dtype=torch.bool), index)


def _by_rows(candidates: PooledCandidates) -> list[Tensor]:
    """Parts of the log-odds row by row, under every power of the row's weights."""
    weights, shares = candidates.weights(), candidates.row_shares()  # [N, R], [C, R]
    full = candidates.full().double()
    rivals = torch.softmax(full.expand(len(full), -1).masked_fill(_own(full), -torch.inf), dim=-1)
    slopes = candidates.slopes()  # [C, R, dv]
    slopes = slopes - torch.einsum("cb,brv->crv", rivals, slopes)
    values = candidates.values.expand(-1, slopes.shape[1], -1)
    parts = torch.einsum("nrv,crv->ncr", values, slopes)
    left = log_odds(full) - torch.einsum("nr,ncr->c", weights, parts)
    parts = parts + left[:, None] * shares
    weights = len(weights) * weights.unsqueeze(1)
    return [(weights**a * parts).sum(dim=-1) for a in EXPONENTS]


# Read orders of one bag both ways: tiles that suffice, tiles that decide, deletion area.
#
# By these numbers a fit chooses its epoch and an audit its readout, on validation slides.


@dataclass(frozen=True)
class OrderReading:
    """Numbers of one order on one slide.

    Attributes:
        msk: Fewest first tiles that suffice; NaN where none do.
        decisive: Decisive K; NaN where there is none.
        area: Mean drop of the target's probability over the deletions; NaN with fewer than two.
    """

    msk: float
    decisive: float
    area: float


def read_orders(
    bag: EmbeddedBag, orders: Sequence[Tensor], target: int, *, kappa: float = KAPPA
) -> list[OrderReading]:
    """Reveal and delete the tiles of several orders, at every count of a pooling classifier.

    Other classifiers are read at the counts of :data:`foci.reveal.GRID`.

    Args:
        bag: The bag; two tiles or more.
        orders: Tile indices, most important first.
        target: The class followed.
        kappa: Operating confidence.
    """
    counts, full = _counts(bag), bag.full().numpy()
    ks = counts.numpy()
    inserted = bag.curves(orders, counts)
    deleted = bag.curves(orders, counts, "delete")
    return [
        _reading(up.numpy(), down.numpy(), ks, full, target, kappa)
        for up, down in zip(inserted, deleted, strict=True)
    ]


def net_gain(readings: Sequence[OrderReading], base: Sequence[OrderReading]) -> float:
    r"""How much better one order is than another over the same slides.

    .. math:: D_\mathrm{decisive} + \min(D_\mathrm{MSK}, 0) + 10^{-3} \bar A

    D is the mean over slides of +1 where the order needs fewer tiles than the base, -1 where it
    needs more, 0 where both need the same or both fail. Decisive sets come first, no number of
    them pays for sufficient ones, and the mean deletion area :math:`\bar A` breaks ties.
    """
    decisive, sufficient = (
        float(np.mean(order_differences([getattr(r, name) for r in readings],
                                        [getattr(r, name) for r in base])))
        for name in ("decisive", "msk")
    )  # fmt: skip
    areas = [0.0 if np.isnan(reading.area) else reading.area for reading in readings]
    return decisive + min(sufficient, 0.0) + 1e-3 * float(np.mean(areas))


def _reading(
    up: Floats, down: Floats, ks: Integers, full: Floats, target: int, kappa: float
) -> OrderReading:
    drops = deletion_drop(full, down, ks, target)
    return OrderReading(
        msk=_or_nan(msk(up, ks, target, kappa=kappa)),
        decisive=_or_nan(decisive_k(up, ks, down, ks, target, kappa)),
        area=faithfulness_auc(ks, drops, k_max=int(ks[-1])) if len(ks) > 1 else np.nan,
    )


def _counts(bag: EmbeddedBag) -> Tensor:
    if pools(bag.backbone):
        return default_counts(len(bag), "delete")[1:]
    return torch.tensor([k for k in GRID if k < len(bag)])


def _or_nan(count: int | None) -> float:
    return np.nan if count is None else float(count)
