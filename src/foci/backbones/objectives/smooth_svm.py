"""The smooth top-1 support vector machine loss (Berrada, Zisserman and Kumar, 2018)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

HARD_FROM = math.log(1000.0)
"""Lead of the best over the second-best class from which the hard form is used."""


def smooth_top1_svm(scores: Tensor, labels: Tensor) -> Tensor:
    r"""Mean over the rows of the soft margin of the true class (margin 1, temperature 1).

    .. math:: L(u, y) = \log \sum_c e^{\,u_c + [c \ne y] - u_y}
       \;\ge\; \max_c \big(u_c + [c \ne y]\big) - u_y

    Where the best class leads the second by :math:`\ln 1000` or more, the right-hand side (the
    multi-class hinge) is the loss. For two classes the left-hand side is
    :math:`\mathrm{softplus}(1 + u_\mathrm{other} - u_y)`.

    Args:
        scores: ``[M, C]`` class scores u, with at least two classes.
        labels: ``[M]`` true classes y.

    >>> two_classes = torch.tensor([[0.0, 0.0], [0.0, 8.0]])
    >>> smooth_top1_svm(two_classes[:1], torch.tensor([0]))  # softplus(1)
    tensor(1.3133)
    >>> smooth_top1_svm(two_classes[1:], torch.tensor([0]))  # hinge
    tensor(9.)
    """
    margin = torch.ones_like(scores).scatter(-1, labels[:, None], 0.0)
    excess = scores + margin - scores.gather(-1, labels[:, None])
    best, second = scores.topk(2, dim=-1).values.unbind(-1)
    hard = best - second >= HARD_FROM
    return torch.where(hard, excess.amax(dim=-1), excess.logsumexp(dim=-1)).mean()
