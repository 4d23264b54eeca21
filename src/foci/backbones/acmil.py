"""ACMIL: several attention branches, challenged to differ (Zhang et al. 2024)."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from foci.backbones.acmil_objective import ACMILObjective
from foci.backbones.attention import GatedAttention
from foci.backbones.branches import BranchedBackbone, Score
from foci.backbones.objective import Objective
from foci.backbones.presets import architecture, preset


@architecture("acmil")
class ACMIL(BranchedBackbone):
    r"""K gated attention rows on one trunk; the slide is read with the mean of their maps.

    .. math:: h_i = \mathrm{ReLU}(W x_i), \quad
       a_{ri} = w_r^\top(\tanh(V h_i) \odot \sigma(U h_i)) + b_r, \quad
       \ell = \mathrm{head}\Big(\sum_i \frac1K \sum_r \mathrm{softmax}(a_r)_i\, h_i\Big)

    The mean is over softmax maps, not over logits: a softmax of the mean logits would be another
    model. Each branch also has a classifier of its own, used only in training
    (:class:`~foci.backbones.acmil_objective.ACMILObjective`).

    Args:
        d_in: Feature width.
        n_classes: Number of classes.
        d: Token width; None for the authors' choice, half the feature width.
        hidden: Attention width.
        branches: Number of branches K.
        score: What the native score averages over the branches: ``"logits"`` or ``"softmax"``.
    """

    def __init__(
        self,
        d_in: int,
        n_classes: int,
        *,
        d: int | None = None,
        hidden: int = 128,
        branches: int = 5,
        score: Score = "logits",
    ) -> None:
        super().__init__(d_in, n_classes, d=d, branches=branches, score=score, hidden=hidden)
        self.attention = GatedAttention(self.d_token, hidden, rows=branches)

    def attend(self, tokens: Tensor) -> Tensor:
        """Gated attention, one row per branch."""
        logits: Tensor = self.attention(tokens)
        return logits

    def branch_tokens(self, pooled: Tensor) -> Tensor:
        """A branch has one row: its pooled token."""
        return pooled

    def readout(self, pooled: Tensor) -> Tensor:
        """Slide classifier on the mean over the branches."""
        logits: Tensor = self.head(pooled.mean(dim=-2))
        return logits

    def project(self, values: Tensor) -> Tensor:
        """Slide classifier on every value: the mean over the branches may follow it."""
        projected: Tensor = self.head(values)
        return projected

    def read(self, projected: Tensor) -> Tensor:
        """Mean over the branches."""
        return projected.mean(dim=-2)

    def make_objective(self, **settings: Any) -> Objective:
        """See :class:`~foci.backbones.acmil_objective.ACMILObjective`."""
        return ACMILObjective(self, **settings)


preset("acmil", "paper", ACMIL, d=512, hidden=128, branches=5)
preset("acmil", "official", ACMIL, hidden=128, branches=5)
