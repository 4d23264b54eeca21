"""ASMIL as its authors published it: query tokens, then one attention over them (2026)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from foci.backbones.anchor import AnchorObjective
from foci.backbones.batch import Batch
from foci.backbones.layers import frozen_copy
from foci.backbones.objective import Objective
from foci.backbones.pooling import pool, softmax_weights
from foci.backbones.presets import architecture, preset
from foci.backbones.query_attention import QueryAttention
from foci.backbones.query_backbone import QueryBackbone
from foci.backbones.sampling import choose
from foci.errors import FociError


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
        **widths: As for :class:`~foci.backbones.query_backbone.QueryBackbone`.
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
        **settings: As for :class:`~foci.backbones.anchor.AnchorObjective`.
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
