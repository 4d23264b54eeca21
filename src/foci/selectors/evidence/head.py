"""A selector head that starts as the training-free ranking ``evidence`` and goes on from there."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from foci.selectors.heads.token import SelectorHead, of_targets


class EvidenceHead(nn.Module):
    r"""A mix of evidence columns, and a correction from the token.

    .. math:: a_{ic} = \sum_p \beta_p\, e_{icp} + h_c(t_i)

    with the columns :math:`e_{icp}` of
    :func:`~foci.selectors.evidence.columns.evidence_columns` and the paper's head h. Only the first
    column, evidence, has a weight :math:`\beta` at first, and the last layer of h is 0: before the
    first step the order is that of evidence. :math:`\beta` is no parameter, see
    :func:`~foci.selectors.fitting.tuning.tune`; weight decay draws h back to 0.

    Args:
        d: Token width.
        outputs: Number of classes.
        hidden: Width of h; 0 leaves it out.
        columns: Number of columns.
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

    def at(self, tokens: Tensor, targets: Tensor, evidence: Tensor) -> Tensor:
        """Scores ``[B, N]`` for the target classes ``[B]``."""
        return of_targets(self(tokens, evidence), targets)
