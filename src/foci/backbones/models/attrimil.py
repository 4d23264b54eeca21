"""AttriMIL: every tile has an attribute score for every class (Cai et al., 2025)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foci.backbones.attention import (
    GatedAttention,
    head,
    pool,
    projection,
    residual_adaptor,
    softmax_weights,
)
from foci.backbones.base import Batch, Objective, architecture, declares, objective_of, preset
from foci.backbones.models._pooled import PooledBackbone
from foci.errors import FociError
from foci.outputs import Output
from foci.parts import Parts


@architecture("attrimil")
class AttriMIL(PooledBackbone):
    r"""Per class, an attention net and a scorer; the logit is the attention-weighted score.

    .. math:: h_i = r_i + W_2\,\mathrm{ReLU}(W_1 r_i), \quad
       A_{ci} = s_c(h_i)\, e^{a_c(h_i)}, \quad
       \ell_c = \frac{\sum_i A_{ci}}{\sum_i e^{a_c(h_i)}} + \beta_c

    with :math:`r_i = \mathrm{ReLU}(W x_i)`, or :math:`r_i = x_i` without projection. Trained with
    :class:`AttributeConstraints`.

    Args:
        d: Token width; None for no projection (``d = d_in``, as published).
        hidden: Attention width; None for ``d // 2``.
        adaptor_hidden: Width inside the residual adaptor; None for ``d // 2``.
        scorer_hidden: Width of one two-layer scorer ``Linear - ReLU - Linear`` shared by the
            classes; None for one linear scorer per class.
    """

    attention: nn.ModuleList
    homogeneous = False  # the adaptor has biases
    structure = "rows"

    def __init__(
        self,
        d_in: int,
        n_classes: int,
        *,
        d: int | None = None,
        hidden: int | None = None,
        adaptor_hidden: int | None = None,
        scorer_hidden: int | None = None,
        projection_bias: bool = True,
    ) -> None:
        width = d_in if d is None else d
        super().__init__(d_in, n_classes, d_token=width)
        hidden, adaptor_hidden = hidden or width // 2, adaptor_hidden or width // 2
        self.projection = projection(d_in, d, bias=projection_bias)
        self.adaptor = residual_adaptor(width, adaptor_hidden)
        self.attention = nn.ModuleList(GatedAttention(width, hidden) for _ in range(n_classes))
        self.scorers: nn.Module = (
            nn.ModuleList(nn.Linear(width, 1) for _ in range(n_classes))
            if scorer_hidden is None
            else head(width, n_classes, scorer_hidden)
        )
        self.beta = nn.Parameter(torch.zeros(n_classes))

    def embed(self, x: Tensor) -> Tensor:
        """Projection, then the residual adaptor."""
        projected = super().embed(x)
        tokens: Tensor = projected + self.adaptor(projected)
        return tokens

    def attend(self, tokens: Tensor) -> Tensor:
        """Attention of class c in row c."""
        return torch.cat([net(tokens) for net in self.attention], dim=-1)

    def values(self, tokens: Tensor) -> Tensor:
        """Score of class c in row c, ``[..., N, C, 1]``."""
        if isinstance(self.scorers, nn.ModuleList):
            scores = torch.cat([scorer(tokens) for scorer in self.scorers], dim=-1)
        else:
            scores = self.scorers(tokens)
        return scores.unsqueeze(-1)

    @declares("parts")
    def readout(self, pooled: Tensor) -> Tensor:
        """Pooled scores plus beta."""
        return pooled.squeeze(-1) + self.beta

    @declares("parts")
    def parts(self, tokens: Tensor) -> Parts:
        """See :meth:`Backbone.parts`; row c is evidence for class c alone."""
        evidence = torch.diag_embed(self.values(tokens).squeeze(-1) + self.beta)
        return Parts(self.attend(tokens), evidence)

    def scores(self, tokens: Tensor) -> Tensor:
        r"""Order of the largest attribute score :math:`\max_c A_{ci}`, in float64.

        Classes compete on the raw scale of :math:`s\,e^a`, which no float holds for every a. So
        :math:`L = \ln|s| + a` is formed and each attribute score is returned as

        .. math:: \mathrm{sign}(s)\,\big(L + \sqrt{1 + L^2}\big),

        a strictly increasing function of A over all real numbers (0 stays 0, ±1 stays ±1) that
        neither overflows nor underflows: the ranking is that of A, the values are not.
        """
        score = self.values(tokens).squeeze(-1).double()
        log_size = score.abs().log() + self.attend(tokens).double()
        # L + sqrt(1 + L^2) cancels for L < 0; its reciprocal is that of -L and does not.
        large = log_size.abs() + torch.sqrt(1 + log_size**2)
        size = torch.where(log_size < 0, 1 / large, large)
        return (score.sign() * size).amax(dim=-1)


def spatial_constraint(attributes: Tensor, around: Tensor) -> Tensor:
    r"""Spatial loss: how far tiles are from the strongest tile of their neighbourhood.

    .. math:: L_\mathrm{spatial} = \sum_c \frac{1}{N} \sum_i \big|\tanh(A_{ci} - A_{c,j(i)})\big|,
       \qquad j(i) = \arg\max_{j \in \mathrm{around}(i)} |A_{cj}|

    for the attribute scores ``[N, C']`` of the classes concerned and ``around`` from
    :func:`neighbourhoods`.
    """
    near = attributes[around]  # [N, 9, C']
    strongest = near.gather(1, near.abs().argmax(dim=1, keepdim=True)).squeeze(1)
    return torch.tanh(attributes - strongest).abs().mean(dim=0).sum()


def rank_constraint(top: Tensor, other: Tensor, of_class: bool, negative_class: bool) -> Tensor:
    r"""Rank loss of this bag's top tile v and a queued tile u of the opposite kind, for a class c.

    ============================  ===================================  ======================
    bag                           c any other class                    c the negative class
    ============================  ===================================  ======================
    of class c (u is not)         :math:`[u-v]_+ + [-v]_+ + [u]_+`     :math:`[-v]_+ + [u]_+`
    not of class c (u is)         :math:`[v-u]_+ + [v]_+`              :math:`[v]_+ + [-u]_+`
    ============================  ===================================  ======================

    v is ``top``, the bag's largest attribute score of class c, and u is ``other``.
    """
    if of_class:
        order = torch.relu(-top) + torch.relu(other)
        return order if negative_class else order + torch.relu(other - top)
    order = torch.relu(top)
    return order + (torch.relu(-other) if negative_class else torch.relu(top - other))


def neighbourhoods(coords: Tensor, stride: int) -> Tensor:
    """The 3x3 neighbourhood of every tile, as indices ``[N, 9]`` into the tiles given.

    Column 4 is the tile itself. A neighbour is a tile *exactly* one stride away along x, y or
    both: every tissue contour may start a grid of its own, and tiles of two such grids are not
    neighbours. Where there is none, the tile stands in for it.

    >>> neighbourhoods(torch.tensor([[0, 0], [256, 0]]), stride=256).tolist()
    [[0, 0, 0, 0, 0, 0, 0, 1, 0], [1, 0, 1, 1, 1, 1, 1, 1, 1]]
    """
    step = torch.tensor([-stride, 0, stride], device=coords.device)
    offsets = torch.cartesian_prod(step, step)
    position = coords.round().long() if coords.is_floating_point() else coords.long()
    position = position - position.amin(dim=0)
    # Wide enough that one stride above or below a column meets no tile of the next one.
    width = int(position[:, 1].max()) + stride + 1

    keys, order = (position[:, 0] * width + position[:, 1]).sort(stable=True)
    around = position[:, None, :] + offsets  # [N, 9, 2]
    wanted = around[..., 0] * width + around[..., 1]
    place = torch.searchsorted(keys, wanted).clamp(max=len(keys) - 1)
    itself = torch.arange(len(position), device=coords.device)[:, None]
    found = torch.where(keys[place] == wanted, order[place], itself)
    found[:, 4] = itself[:, 0]  # not another tile at the same place
    return found


class TileQueues(nn.Module):
    """One first-in-first-out queue of tiles per class; a full queue drops its oldest tile.

    Tiles are stored oldest first in a buffer, so that a resumed run has them.

    >>> queues = TileQueues(n_classes=1, length=2, d_in=1)
    >>> for tile in (1.0, 2.0, 3.0):
    ...     queues.append(0, torch.tensor([tile]))
    >>> queues.tiles[0].tolist(), queues.size(0)
    ([[2.0], [3.0]], 2)
    >>> queues.next(0), queues.tiles[0].tolist()
    (tensor([2.]), [[3.0], [2.0]])
    """

    tiles: Tensor
    counts: Tensor

    def __init__(self, n_classes: int, length: int, d_in: int) -> None:
        super().__init__()
        self.register_buffer("tiles", torch.zeros(n_classes, length, d_in))
        self.register_buffer("counts", torch.zeros(n_classes, dtype=torch.long))

    def size(self, c: int) -> int:
        """Number of tiles that class c has queued."""
        return int(self.counts[c])

    def append(self, c: int, tile: Tensor) -> None:
        """Put a tile ``[D]`` at the end of the queue of class c."""
        if self.size(c) == self.tiles.shape[1]:
            self.next(c)
            self.counts[c] -= 1
        self.tiles[c, self.size(c)] = tile.detach()
        self.counts[c] += 1

    def next(self, c: int) -> Tensor:
        """Return the oldest tile of class c and move it to the end; the queue must not be empty."""
        oldest = self.tiles[c, 0].clone()
        queue = self.tiles[c, : self.size(c)]
        queue.copy_(queue.roll(-1, dims=0))
        return oldest

    def clear(self) -> None:
        """Empty all queues."""
        self.tiles.zero_()
        self.counts.zero_()


@objective_of(AttriMIL)
class AttributeConstraints(Objective):
    r"""Cross-entropy plus a spatial constraint within and a rank constraint between slides.

    .. math:: L = \mathrm{CE} + \lambda_s L_\mathrm{spatial} + \lambda_r L_\mathrm{rank}

    on the attribute scores :math:`A_{ci} = s_{ci} e^{a_{ci}}` of each bag. For the rank
    constraint every class has two queues of tiles: top tiles of bags of that class, and of other
    bags. They hold *features*, so that an old tile is scored by the present weights. Bags are
    processed in the order of the batch; the loss is their mean. Without coordinates or strides
    there is no spatial constraint.

    As published, class 0 is the negative class: it has no spatial constraint and its own rank
    constraint. For subtypes of equal standing set ``symmetric``.

    Args:
        spatial_weight, rank_weight: :math:`\lambda_s` and :math:`\lambda_r`.
        queue_length: Tiles kept per queue.
        symmetric: Treat class 0 like every other class.
    """

    backbone: AttriMIL

    def __init__(
        self,
        backbone: AttriMIL,
        *,
        spatial_weight: float = 1.0,
        rank_weight: float = 5.0,
        queue_length: int = 4,
        symmetric: bool = False,
    ) -> None:
        super().__init__(backbone)
        if queue_length < 1:
            raise FociError("queue_length", f"is {queue_length}", "keep at least one tile")
        self.spatial_weight, self.rank_weight = spatial_weight, rank_weight
        self.symmetric = symmetric
        self.positive = TileQueues(backbone.n_classes, queue_length, backbone.d_in)
        self.negative = TileQueues(backbone.n_classes, queue_length, backbone.d_in)
        self.to(backbone.beta)  # its device and dtype

    @classmethod
    def departures(cls, classes: Sequence[str], output: Output) -> tuple[dict[str, Any], str]:
        """See :meth:`Objective.departures`."""
        return {"lr": 1e-3}, "at 2e-4 the ranking constraint drives all scores to zero first"

    def begin_epoch(self) -> None:
        """Empty the queues, whose tiles were chosen by the weights of an epoch ago."""
        self.positive.clear()
        self.negative.clear()

    def forward(self, batch: Batch) -> Tensor:
        """Cross-entropy and both constraints, each averaged over the bags."""
        bag, spatial, rank = zip(*(self._terms(batch, b) for b in range(len(batch))), strict=True)
        return self.named_terms(
            bag=torch.stack(bag).mean(),
            spatial=self.spatial_weight * torch.stack(spatial).mean(),
            rank=self.rank_weight * torch.stack(rank).mean(),
        )

    def _terms(self, batch: Batch, b: int) -> tuple[Tensor, Tensor, Tensor]:
        real = batch.mask[b]
        features = batch.features[b, real]
        tokens = self.backbone.embed(features)
        attention, values = self.backbone.attend(tokens), self.backbone.values(tokens)
        logits = self.backbone.readout(pool(softmax_weights(attention), values))
        attributes = values.squeeze(-1) * attention.exp()

        spatial = logits.new_zeros(())
        if batch.coords is not None and batch.strides is not None:
            around = neighbourhoods(batch.coords[b, real], int(batch.strides[b]))
            spatial = spatial_constraint(attributes[:, 0 if self.symmetric else 1 :], around)
        rank = self._rank(features, attributes, int(batch.labels[b]))
        return F.cross_entropy(logits, batch.labels[b]), spatial, rank

    def _rank(self, features: Tensor, attributes: Tensor, label: int) -> Tensor:
        """Queue the bag's top tile of every class and compare it with an older, opposite one."""
        total = attributes.new_zeros(())
        for c in range(self.backbone.n_classes):
            of_class = label == c
            same, opposite = self.positive, self.negative
            if not of_class:
                same, opposite = opposite, same
            top, tile = attributes[:, c].max(dim=0)
            same.append(c, features[tile])
            if opposite.size(c):
                token = self.backbone.embed(opposite.next(c)[None].to(features))
                attention, values = self.backbone.attend(token), self.backbone.values(token)
                other = (values.squeeze(-1) * attention.exp())[0, c]
                negative_class = c == 0 and not self.symmetric
                total = total + rank_constraint(top, other, of_class, negative_class)
        return total / self.backbone.n_classes


preset("attrimil", "paper", AttriMIL, d=512, scorer_hidden=256, projection_bias=False)
preset("attrimil", "official", AttriMIL)
preset("attrimil", "aligned", AttriMIL, d=512)
