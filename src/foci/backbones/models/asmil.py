"""ASMIL as the paper runs it: gated attention held steady by an anchor (after Ye et al. 2026)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from foci.backbones.batch import Batch
from foci.backbones.layers.mlp import frozen_copy
from foci.backbones.layers.query_attention import QueryAttention
from foci.backbones.layers.softmax_pooling import pool, softmax_weights
from foci.backbones.models._branched import QueryBackbone
from foci.backbones.models.abmil import ABMIL
from foci.backbones.objectives.asmil import AnchorObjective
from foci.backbones.objectives.base import Objective
from foci.backbones.objectives.random_subset import choose
from foci.backbones.registry import architecture, preset
from foci.errors import FociError


@architecture("asmil")
class ASMIL(ABMIL):
    """ABMIL with a second, slowly trailing copy of its attention.

    The anchor takes part in training only (:class:`ASMILObjective`); it is kept and counted as
    part of the model, as in the paper's efficiency table. Native score: the online attention
    logits before the softmax. The authors' published architecture is
    :class:`~foci.backbones.models.asmil.ASMILQuery`.

    Args:
        *args: As for :class:`~foci.backbones.models.abmil.ABMIL`.
        **widths: As for :class:`~foci.backbones.models.abmil.ABMIL`.
    """

    def __init__(self, *args: Any, **widths: Any) -> None:
        super().__init__(*args, **widths)
        self.anchor = frozen_copy(self.attention)

    def make_objective(self, **settings: Any) -> Objective:
        """See :class:`ASMILObjective`."""
        return ASMILObjective(self, **settings)


class ASMILObjective(AnchorObjective):
    r"""The anchored loss, on bags that may be thinned at random.

    The published model drops query tokens at random; the gated form has none, and drops
    :math:`\lfloor \mathrm{tile\_drop} \cdot N \rfloor` tiles of every bag instead. Both terms of
    the loss then see the thinned bag. A backbone in ``eval`` mode sees every tile.

    Args:
        backbone: The classifier.
        tile_drop: Share of tiles dropped while training, below 1; 0 drops none.
        **settings: As for :class:`~foci.backbones.objectives.asmil.AnchorObjective`.
    """

    backbone: ASMIL

    def __init__(self, backbone: ASMIL, *, tile_drop: float = 0.0, **settings: float) -> None:
        if not 0 <= tile_drop < 1:
            raise FociError("tile_drop", f"{tile_drop} drops every tile", "choose in [0, 1)")
        super().__init__(backbone, **settings)
        self.tile_drop = tile_drop

    def pair(self) -> tuple[nn.Module, nn.Module]:
        """The anchor belongs to the model."""
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


preset("asmil", "paper", ASMIL, d=256, hidden=128, head_hidden=128, projection_bias=False)


@architecture("asmil-query")
class ASMILQuery(QueryBackbone):
    r"""T learned queries summarise the bag, a class query summarises the summaries.

    Query t pools the tiles with its own multi-head attention into :math:`f_t`; then

    .. math:: \ell = \mathrm{head}\big(\mathrm{attention}(q_\mathrm{cls}, \{f_1, \dots, f_T\})\big)

    Tiles meet only in the T first attentions, so every prefix of a ranking follows from running
    sums. The classifiers of the single queries are part of the published weights and unused.

    Args:
        d_in: Feature width.
        n_classes: Number of classes.
        branches: Number of queries T.
        **widths: As for :class:`~foci.backbones.models._branched.QueryBackbone`.
    """

    def __init__(self, d_in: int, n_classes: int, *, branches: int = 8, **widths: Any) -> None:
        super().__init__(d_in, n_classes, branches=branches, **widths)
        self.class_query = nn.Parameter(torch.zeros(1, 1, self.d_token))
        self.bag = QueryAttention(self.d_token, self.config["heads"], self.config["dropout"])

    def project(self, tokens: Tensor) -> Tensor:
        """Every query's own values."""
        return self.branches.project(tokens)

    def classify(self, summaries: Tensor, keep: Tensor | None = None) -> Tensor:
        """Summaries ``[..., T, d]`` (those in ``keep`` ``[..., T]``) to logits ``[..., C]``."""
        weights = softmax_weights(self.bag.logits(self.class_query[0, 0], summaries), keep)
        values = self.bag.project(pool(weights, summaries.unsqueeze(-2)))
        logits: Tensor = self.head(self.bag(values))
        return logits

    def read(self, values: Tensor) -> Tensor:
        """Class attention over all summaries."""
        return self.classify(self.branches.summarise(values))

    def make_objective(self, **settings: Any) -> Objective:
        """See :class:`ASMILQueryObjective`."""
        return ASMILQueryObjective(self, **settings)


class ASMILQueryObjective(AnchorObjective):
    """The anchored loss; some summaries are withheld from the class query at random.

    The anchor copies what leads to the attention logits, the projection included. It follows the
    method as described: it starts as a copy, moves after every step, and its loss is summed over
    the tiles. (The released code leaves the anchor where it was initialised and averages over
    the tiles.)

    Args:
        backbone: The classifier.
        n_drop: Summaries withheld while training, fewer than the queries; 0 withholds none.
        **settings: As for :class:`~foci.backbones.objectives.asmil.AnchorObjective`.
    """

    backbone: ASMILQuery

    def __init__(self, backbone: ASMILQuery, *, n_drop: int = 0, **settings: float) -> None:
        if not 0 <= n_drop < backbone.n_branches:
            queries = f"{backbone.n_branches} queries"
            raise FociError("n_drop", f"{n_drop} of {queries}", "at least one has to remain")
        super().__init__(backbone, **settings)
        self.n_drop = n_drop
        self.anchor = frozen_copy(self._online())

    def _online(self) -> nn.Sequential:
        return nn.Sequential(self.backbone.projection, self.backbone.branches)

    def pair(self) -> tuple[nn.Module, nn.Module]:
        """The anchor lives only while training."""
        return self.anchor, self._online()

    def forward(self, batch: Batch) -> Tensor:
        """Mean over the batch."""
        model, keep = self.backbone, None
        tokens = model.embed(batch.features)
        online = model.attend(tokens)
        with torch.no_grad():
            anchor = self.anchor(batch.features)
        weights = softmax_weights(online, batch.mask)
        summaries = model.branch_tokens(pool(weights, model.values(tokens)))
        if model.training and self.n_drop:
            everyone = torch.ones(summaries.shape[:-1], dtype=torch.bool, device=summaries.device)
            keep = ~choose(everyone, self.n_drop)
        slide = model.classify(summaries, keep)
        return self.loss(slide, batch.labels, online, anchor, batch.mask)


preset("asmil", "official", ASMILQuery, branches=8, heads=8)
