"""ASMIL: attention held steady by an anchor (after Ye et al. 2026), gated or with query tokens."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foci.backbones.attention import (
    GatedAttention,
    QueryAttention,
    QueryBranches,
    ema_update,
    frozen_copy,
    head,
    pool,
    projection,
    softmax_weights,
)
from foci.backbones.base import (
    Batch,
    Objective,
    architecture,
    choose,
    declares,
    objective_of,
    preset,
)
from foci.backbones.models._pooled import (
    PooledBackbone,
    Score,
    check_branches,
    classify_branches,
    mean_attention,
    official_width,
)
from foci.errors import FociError


@architecture("asmil")
class ASMIL(PooledBackbone):
    """ABMIL with a second, slowly trailing copy of its attention, as the paper runs it.

    The anchor takes part in training only (:class:`ASMILObjective`); it is kept and counted as
    part of the model, as in the paper's efficiency table. Native score: the online attention logits
    before the softmax. The authors' published architecture is :class:`ASMILQuery`.
    The arguments are those of :class:`~foci.backbones.models.abmil.ABMIL`.
    """

    def __init__(
        self,
        d_in: int,
        n_classes: int,
        *,
        d: int | None,
        hidden: int,
        head_hidden: int | None = None,
        projection_bias: bool = True,
        gated: bool = True,
        activation: str = "tanh",
        dropout: float = 0.0,
    ) -> None:
        width = d_in if d is None else d
        super().__init__(d_in, n_classes, d_token=width)
        self.projection = projection(d_in, d, bias=projection_bias, dropout=dropout)
        self.attention = GatedAttention(width, hidden, gated=gated, activation=activation)
        self.head = head(width, n_classes, head_hidden)
        self.anchor = frozen_copy(self.attention)
        self.homogeneous = d is None or not projection_bias


@architecture("asmil-query")
class ASMILQuery(PooledBackbone):
    r"""T learned queries summarise the bag, a class query summarises the summaries.

    Query t pools the tiles with its own multi-head attention into :math:`f_t`; then

    .. math:: \ell = \mathrm{head}\big(\mathrm{attention}(q_\mathrm{cls}, \{f_1, \dots, f_T\})\big)

    Tiles meet only in the T first attentions, so every prefix of a ranking follows from running
    sums. The classifiers of the single queries are part of the published weights and unused.

    The arguments are those of :class:`~foci.backbones.models.acmil.ACMILMultiHead`, with T
    ``branches``.
    """

    homogeneous = True

    def __init__(
        self,
        d_in: int,
        n_classes: int,
        *,
        d: int | None = None,
        branches: int = 8,
        score: Score = "logits",
        heads: int = 8,
        dropout: float = 0.1,
    ) -> None:
        check_branches(branches, score)
        d = official_width(d_in) if d is None else d
        super().__init__(d_in, n_classes, d_token=d, d=d)
        self.n_branches, self.score = branches, score
        self.projection = projection(d_in, d, bias=False)
        self.branch_heads = nn.ModuleList(nn.Linear(d, n_classes) for _ in range(branches))
        self.head = nn.Linear(d, n_classes)
        self.branches = QueryBranches(d, branches, heads, dropout)
        self.class_query = nn.Parameter(torch.zeros(1, 1, d))
        self.bag = QueryAttention(d, heads, dropout)

    def attend(self, tokens: Tensor) -> Tensor:
        """One row per query and head."""
        logits: Tensor = self.branches(tokens)
        return logits

    def branch_logits(self, pooled: Tensor) -> Tensor:
        """Pooled tokens ``[..., R, d]`` to every query's own logits ``[..., T, C]``."""
        return classify_branches(self.branch_heads, self.branches.read(pooled))

    def classify(self, summaries: Tensor, keep: Tensor | None = None) -> Tensor:
        """Summaries ``[..., T, d]`` (those in ``keep`` ``[..., T]``) to logits ``[..., C]``."""
        weights = softmax_weights(self.bag.logits(self.class_query[0, 0], summaries), keep)
        values = self.bag.project(pool(weights, summaries.unsqueeze(-2)))
        logits: Tensor = self.head(self.bag(values))
        return logits

    @declares("split-readout")
    def readout(self, pooled: Tensor) -> Tensor:
        """Values of the pooled tokens, then the slide."""
        return self.read(self.project(pooled))

    @declares("split-readout")
    def project(self, values: Tensor) -> Tensor:
        """Every query's own values ``[..., R, d/H]``, of pooled tokens or tiles ``[..., 1, d]``."""
        return self.branches.project(values)

    @declares("split-readout")
    def read(self, projected: Tensor) -> Tensor:
        """Class attention over all summaries."""
        return self.classify(self.branches.summarise(projected))

    def scores(self, tokens: Tensor) -> Tensor:
        """Mean over queries and heads of the attention logits, or of the softmax maps."""
        return mean_attention(self.attend(tokens), self.score)


def normalised_sigmoid(logits: Tensor, mask: Tensor | None = None) -> Tensor:
    r"""Sigmoid attention normalised over the tiles, so that no single tile takes it over.

    .. math:: \mathrm{NSF}(z)_i = \frac{\sigma(z_i)}{\sum_j \sigma(z_j) + 10^{-8}}

    >>> normalised_sigmoid(torch.tensor([[0.0], [900.0]])).flatten()
    tensor([0.3333, 0.6667])
    """
    weights = torch.sigmoid(logits)
    if mask is not None:
        weights = weights.masked_fill(~mask.unsqueeze(-1), 0.0)
    return weights / (weights.sum(dim=-2, keepdim=True) + 1e-8)


def anchor_divergence(
    online: Tensor, anchor: Tensor, mask: Tensor | None = None, *, temperature: float = 0.5
) -> Tensor:
    r"""Cross-entropy of the online map against the anchor's, averaged over rows and bags.

    .. math:: -\sum_i \mathrm{NSF}(b / T_a)_i \, \log \mathrm{softmax}(a)_i

    for online logits a and anchor logits b, ``[..., N, R]``, at the temperature :math:`T_a`.
    """
    target = normalised_sigmoid(anchor / temperature, mask)
    if mask is None:
        log_map = F.log_softmax(online, dim=-2)
    else:
        absent = ~mask.unsqueeze(-1)
        log_map = F.log_softmax(online.masked_fill(absent, -torch.inf), dim=-2)
        log_map = log_map.masked_fill(absent, 0.0)
    return -(target * log_map).sum(dim=-2).mean()


class AnchorObjective(Objective, ABC):
    r"""Slide loss plus the divergence from an anchor that trails the online attention.

    .. math:: L = \mathrm{CE}(\ell, y)
       + \beta\, \mathrm{CE}\big(\mathrm{NSF}(b/T_a),\, \mathrm{softmax}(a)\big), \qquad
       \theta_b \leftarrow m\,\theta_b + (1-m)\,\theta_a \text{ after every step}

    The anchor starts as a copy of the online attention and gets no gradient.

    Args:
        beta: Weight of the divergence.
        temperature: :math:`T_a`.
        momentum: m.
    """

    def __init__(
        self,
        backbone: ASMIL | ASMILQuery,
        *,
        beta: float = 1.0,
        temperature: float = 0.5,
        momentum: float = 0.999,
    ) -> None:
        if beta < 0:
            raise FociError("beta", f"{beta} is negative", "choose 0 or more")
        if temperature <= 0:
            raise FociError("temperature", f"{temperature} is not positive", "choose e.g. 0.5")
        if not 0 <= momentum <= 1:
            raise FociError("momentum", f"{momentum} is not a share", "choose between 0 and 1")
        super().__init__(backbone)
        self.beta, self.temperature, self.momentum = beta, temperature, momentum

    @abstractmethod
    def pair(self) -> tuple[nn.Module, nn.Module]:
        """The anchor, and the online module that it trails."""

    def begin_stage(self, stage: str, total_steps: int) -> None:
        """Start the anchor as a copy of the online attention."""
        anchor, online = self.pair()
        anchor.load_state_dict(online.state_dict())

    def after_step(self) -> None:
        """Move the anchor."""
        anchor, online = self.pair()
        ema_update(anchor, online, self.momentum)

    def loss(
        self, slide: Tensor, labels: Tensor, online: Tensor, anchor: Tensor, mask: Tensor
    ) -> Tensor:
        """Both terms, from slide logits ``[B, C]`` and attention logits ``[B, N, R]``."""
        divergence = anchor_divergence(online, anchor, mask, temperature=self.temperature)
        return self.named_terms(bag=F.cross_entropy(slide, labels), anchor=self.beta * divergence)


@objective_of(ASMIL)
class ASMILObjective(AnchorObjective):
    r"""ASMIL's loss for gated attention, with random tile dropping.

    The published model drops query tokens at random; the gated form has none, and drops
    :math:`\lfloor \mathrm{tile\_drop} \cdot N \rfloor` tiles of every bag instead. Both terms of
    the loss then see the thinned bag. A backbone in ``eval`` mode sees every tile.

    Args:
        tile_drop: Share of tiles dropped while training, below 1; 0 drops none.
        **settings: As for :class:`AnchorObjective`.
    """

    backbone: ASMIL

    def __init__(self, backbone: ASMIL, *, tile_drop: float = 0.0, **settings: float) -> None:
        if not 0 <= tile_drop < 1:
            raise FociError("tile_drop", f"{tile_drop} drops every tile", "choose in [0, 1)")
        super().__init__(backbone, **settings)
        self.tile_drop = tile_drop

    def pair(self) -> tuple[nn.Module, nn.Module]:
        """The model's own anchor and its attention."""
        return self.backbone.anchor, self.backbone.attention

    def forward(self, batch: Batch) -> Tensor:
        """Mean over the batch."""
        model, mask = self.backbone, batch.mask
        if model.training and self.tile_drop:
            n_tiles = mask.sum(dim=-1, keepdim=True)
            mask = mask & ~choose(mask, (n_tiles * self.tile_drop).long())
        tokens = model.embed(batch.features)
        online = model.attend(tokens)
        with torch.no_grad():
            anchor = model.anchor(tokens)
        slide = model.readout(pool(softmax_weights(online, mask), model.values(tokens)))
        return self.loss(slide, batch.labels, online, anchor, mask)


@objective_of(ASMILQuery)
class ASMILQueryObjective(AnchorObjective):
    """ASMIL's loss for query tokens; some summaries are hidden from the class query at random.

    The anchor copies what leads to the attention logits, the projection included. It follows the
    method as described: it starts as a copy, moves after every step, and its loss is summed over
    the tiles. (The released code leaves the anchor where it was initialised and averages over
    the tiles.)

    Args:
        n_drop: Summaries hidden while training, fewer than the queries; 0 hides none.
        **settings: As for :class:`AnchorObjective`.
    """

    backbone: ASMILQuery

    def __init__(self, backbone: ASMILQuery, *, n_drop: int = 0, **settings: float) -> None:
        if not 0 <= n_drop < backbone.n_branches:
            queries = f"{backbone.n_branches} queries"
            raise FociError("n_drop", f"{n_drop} of {queries}", "at least one has to remain")
        super().__init__(backbone, **settings)
        self.n_drop = n_drop
        self.anchor = frozen_copy(nn.Sequential(backbone.projection, backbone.branches))

    def pair(self) -> tuple[nn.Module, nn.Module]:
        """The anchor, which exists only while training, and the modules it copies."""
        return self.anchor, nn.Sequential(self.backbone.projection, self.backbone.branches)

    def forward(self, batch: Batch) -> Tensor:
        """Mean over the batch."""
        model, keep = self.backbone, None
        tokens = model.embed(batch.features)
        online = model.attend(tokens)
        with torch.no_grad():
            anchor = self.anchor(batch.features)
        weights = softmax_weights(online, batch.mask)
        summaries = model.branches.read(pool(weights, model.values(tokens)))
        if model.training and self.n_drop:
            everyone = torch.ones(summaries.shape[:-1], dtype=torch.bool, device=summaries.device)
            keep = ~choose(everyone, self.n_drop)
        slide = model.classify(summaries, keep)
        return self.loss(slide, batch.labels, online, anchor, batch.mask)


preset("asmil", "paper", ASMIL, d=256, hidden=128, head_hidden=128, projection_bias=False)
preset("asmil", "official", ASMILQuery, branches=8, heads=8)
