"""Pooling without attention: the best tile (max pooling, CLAM's MIL_fc), or the mean of all."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

import torch
from torch import Tensor, nn

from foci.backbones.attention import head, projection
from foci.backbones.base import (
    Backbone,
    Capabilities,
    architecture,
    declared,
    declares,
    preset,
)
from foci.backbones.models._pooled import POOLING, PooledBackbone, refuse_gate
from foci.parts import Parts, Structure


class BestTile(Backbone):
    r"""Every tile is classified alone, and the tile that scores best gives the slide's logits.

    .. math:: \ell_{ci} = u_c^\top h_i + b_c, \qquad h_i = \mathrm{ReLU}(W x_i), \qquad
       \ell_c = \ell_{c\,i(c)}, \qquad i(c) = \arg\max_i s_{ci}

    A subclass says by which score :math:`s` the tiles compete. Over the prefixes of a sequence the
    best tile changes only where a tile beats all before it, so a running maximum gives every count.
    Native score: :math:`s`, in the column of the class that the full bag predicts where every class
    has its own. There are no weights that a gate could multiply; it acts on the features.

    Args:
        d: Token width.
        projection_bias, projection_activation, dropout: See
            :func:`~foci.backbones.attention.projection`.
    """

    def __init__(
        self,
        d_in: int,
        n_classes: int,
        *,
        d: int,
        projection_bias: bool = True,
        projection_activation: str = "relu",
        dropout: float = 0.0,
    ) -> None:
        super().__init__(d_in, n_classes, d_token=d)
        self.projection = projection(
            d_in, d, bias=projection_bias, dropout=dropout, activation=projection_activation
        )
        self.head = nn.Linear(d, n_classes)
        self.homogeneous = not projection_bias and projection_activation == "relu"

    @abstractmethod
    def compete(self, logits: Tensor) -> Tensor:
        """Tile logits ``[..., N, C]`` to scores ``[..., N, 1 or C]``: for all classes, or each."""

    @property
    def capabilities(self) -> Capabilities:
        """As attention pooling, but there are no weights to gate."""
        structure: Structure = "best tile" if declared(self, "best-tile") else "none"
        own = replace(POOLING, gate_sites=("feature",), structure=structure)
        return replace(own, homogeneous=self.homogeneous)

    @declares("pooling", "best-tile")
    def aggregate(
        self, tokens: Tensor, mask: Tensor | None = None, gate: Tensor | None = None
    ) -> Tensor:
        """See :meth:`Backbone.aggregate`; a gate is refused."""
        refuse_gate(self, gate)
        logits: Tensor = self.head(tokens)
        scores = self.compete(logits)
        if mask is not None:
            scores = scores.masked_fill(~mask.unsqueeze(-1), -torch.inf)
        return _gather_instances(logits, scores.argmax(dim=-2, keepdim=True)).squeeze(-2)

    @declares("prefix-sums")
    def prefixes(self, tokens: Tensor, ks: Tensor | None = None) -> Tensor:
        """See :meth:`Backbone.prefixes`; by a running maximum."""
        logits: Tensor = self.head(tokens if ks is None else tokens[: int(ks.max())])
        best = torch.cummax(self.compete(logits), dim=0).indices
        return _gather_instances(logits, best if ks is None else best[ks - 1])

    @declares("best-tile")
    def parts(self, tokens: Tensor) -> Parts:
        """See :meth:`Backbone.parts`; all weight is on the best tile, of all classes or of each."""
        logits: Tensor = self.head(tokens)
        scores = self.compete(logits)
        evidence = logits.unsqueeze(-2) if scores.shape[-1] == 1 else torch.diag_embed(logits)
        return Parts(scores, evidence, hard=True)

    def scores(self, tokens: Tensor) -> Tensor:
        """The score by which the tiles compete, of the class that all tokens predict."""
        logits: Tensor = self.head(tokens)
        scores = self.compete(logits)
        predicted = int(self.aggregate(tokens.unsqueeze(0)).argmax())
        return scores[:, min(predicted, scores.shape[-1] - 1)]


@architecture("max-mil")
class MaxMIL(BestTile):
    r"""Max pooling: every class has the logit of its best tile.

    .. math:: \ell_c = \max_i \ell_{ci}

    Trained with cross-entropy. See :class:`BestTile` for the arguments.
    """

    @declares("best-tile")
    def compete(self, logits: Tensor) -> Tensor:
        """The logits themselves."""
        return logits


@architecture("mil-fc")
class MILfc(BestTile):
    r"""CLAM's ``MIL_fc`` (two classes) and ``MIL_fc_mc`` (more): one tile gives all logits.

    With two classes it is the tile with the largest probability of class 1, whatever the slide is;
    with more it is the tile with the largest probability of any class:

    .. math:: i = \arg\max_i p_{1i} \quad (C = 2), \qquad i = \arg\max_i \max_c p_{ci}
       \quad (C > 2), \qquad p_i = \mathrm{softmax}(\ell_i)

    Tiles compete by the log-odds of that probability, in float64, which sort as it does and do not
    tie where it rounds to 1. Trained with cross-entropy. See :class:`BestTile` for the arguments.
    """

    @declares("best-tile")
    def compete(self, logits: Tensor) -> Tensor:
        """Log-odds of class 1, or the largest of any class."""
        exact = logits.double()
        if self.n_classes == 2:
            return exact[..., 1:] - exact[..., :1]
        first = exact.argmax(dim=-1, keepdim=True)
        others = torch.logsumexp(exact.scatter(-1, first, -torch.inf), dim=-1, keepdim=True)
        return exact.gather(-1, first) - others


def _gather_instances(logits: Tensor, tiles: Tensor) -> Tensor:
    """Class c of the tile in column c (or of the only column): ``[..., n, C]``."""
    return logits.gather(-2, tiles.expand(*tiles.shape[:-1], logits.shape[-1]))


@architecture("mean-mil")
class MeanMIL(PooledBackbone):
    r"""Mean of the tiles' logits, which is the head on the mean token.

    .. math:: h_i = \mathrm{ReLU}(W x_i), \qquad
       \ell = \frac1N \sum_i (U h_i + b) = U \Big(\frac1N \sum_i h_i\Big) + b

    It is attention pooling with equal weights. There is no attention to rank tiles by; the proxy
    is the tile's own logit for the class that the full bag predicts. Trained with cross-entropy.
    The arguments are those of :class:`BestTile`, but ``d`` may be None for no projection, and the
    head may have hidden layers as in :func:`~foci.backbones.attention.head`: it then reads
    the mean token.
    """

    def __init__(
        self,
        d_in: int,
        n_classes: int,
        *,
        d: int | None,
        head_hidden: int | None = None,
        head_layers: int = 1,
        projection_bias: bool = True,
        projection_activation: str = "relu",
        dropout: float = 0.0,
    ) -> None:
        width = d_in if d is None else d
        super().__init__(d_in, n_classes, d_token=width)
        self.projection = projection(
            d_in, d, bias=projection_bias, dropout=dropout, activation=projection_activation
        )
        self.head = head(width, n_classes, head_hidden, head_layers)
        plain = not projection_bias and projection_activation == "relu"
        self.homogeneous = d is None or plain

    @property
    def capabilities(self) -> Capabilities:
        """As every pooling, but the tile score is a proxy."""
        return replace(super().capabilities, score="proxy")

    def attend(self, tokens: Tensor) -> Tensor:
        """The same attention logit, 0, for every tile."""
        return tokens.new_zeros((*tokens.shape[:-1], 1))

    def scores(self, tokens: Tensor) -> Tensor:
        r"""The tile's logit :math:`\ell_{\hat c}(\{i\})` of the class that all tokens predict."""
        logits: Tensor = self.head(tokens)
        return logits[:, int(self.head(tokens.mean(dim=0)).argmax())]


preset("max-mil", "official", MaxMIL, d=512, dropout=0.25)
preset("mil-fc", "official", MILfc, d=512, dropout=0.25)
preset("mean-mil", "official", MeanMIL, d=512, dropout=0.25)
