"""AttriMIL: every tile has an attribute score for every class (Cai et al., 2025)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from foci.backbones.layers.attention import GatedAttention
from foci.backbones.layers.mlp import head, projection, residual_adaptor
from foci.backbones.models._pooled import PooledBackbone
from foci.backbones.objectives.attrimil import AttributeConstraints
from foci.backbones.registry import architecture, preset


@architecture("attrimil")
class AttriMIL(PooledBackbone):
    r"""Per class, an attention net and a scorer; the logit is the attention-weighted score.

    .. math:: h_i = r_i + W_2\,\mathrm{ReLU}(W_1 r_i), \quad
       A_{ci} = s_c(h_i)\, e^{a_c(h_i)}, \quad
       \ell_c = \frac{\sum_i A_{ci}}{\sum_i e^{a_c(h_i)}} + \beta_c

    with :math:`r_i = \mathrm{ReLU}(W x_i)`, or :math:`r_i = x_i` without projection. Trained with
    :class:`~foci.backbones.objectives.attrimil.AttributeConstraints`.

    Args:
        d_in: Feature width.
        n_classes: Number of classes.
        d: Token width; None for no projection (``d = d_in``, as published).
        hidden: Attention width; None for ``d // 2``.
        adaptor_hidden: Width inside the residual adaptor; None for ``d // 2``.
        scorer_hidden: Width of one two-layer scorer ``Linear - ReLU - Linear`` shared by the
            classes; None for one linear scorer per class.
        projection_bias: Whether the projection has a bias.
    """

    attention: nn.ModuleList
    homogeneous = False  # the adaptor has biases

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
        projected: Tensor = self.projection(x)
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

    def readout(self, pooled: Tensor) -> Tensor:
        """Pooled scores plus beta."""
        return pooled.squeeze(-1) + self.beta

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

    def make_objective(self, **settings: Any) -> AttributeConstraints:
        """Cross-entropy, spatial and rank constraint; see :class:`AttributeConstraints`."""
        return AttributeConstraints(self, **settings)


preset("attrimil", "paper", AttriMIL, d=512, scorer_hidden=256, projection_bias=False)
preset("attrimil", "official", AttriMIL)
preset("attrimil", "aligned", AttriMIL, d=512)
