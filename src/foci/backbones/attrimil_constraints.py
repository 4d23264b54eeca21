"""AttriMIL's attribute scores, and what is asked of them in training."""

from __future__ import annotations

import torch
from torch import Tensor


def attribute_scores(attention: Tensor, values: Tensor) -> Tensor:
    r""":math:`A_{ci} = s_{ci}\,e^{a_{ci}}` from logits ``[N, C]`` and scores ``[N, C, 1]``."""
    return values.squeeze(-1) * attention.exp()


def spatial_constraint(attributes: Tensor, around: Tensor) -> Tensor:
    r"""How far tiles are from the strongest tile of their neighbourhood.

    .. math:: L_\mathrm{spatial} = \sum_c \frac{1}{N} \sum_i \big|\tanh(A_{ci} - A_{c,j(i)})\big|,
       \qquad j(i) = \arg\max_{j \in \mathrm{around}(i)} |A_{cj}|

    Args:
        attributes: ``[N, C']`` attribute scores of the classes concerned.
        around: ``[N, 9]`` indices from :func:`~foci.backbones.neighbours.neighbourhoods`.
    """
    near = attributes[around]  # [N, 9, C']
    strongest = near.gather(1, near.abs().argmax(dim=1, keepdim=True)).squeeze(1)
    return torch.tanh(attributes - strongest).abs().mean(dim=0).sum()


def rank_constraint(top: Tensor, other: Tensor, of_class: bool, negative_class: bool) -> Tensor:
    r"""Order of this bag's top tile v and a queued tile u of the opposite kind, for one class c.

    ============================  ===================================  ======================
    bag                           c any other class                    c the negative class
    ============================  ===================================  ======================
    of class c (u is not)         :math:`[u-v]_+ + [-v]_+ + [u]_+`     :math:`[-v]_+ + [u]_+`
    not of class c (u is)         :math:`[v-u]_+ + [v]_+`              :math:`[v]_+ + [-u]_+`
    ============================  ===================================  ======================

    Args:
        top: v, the bag's largest attribute score of class c.
        other: u, attribute score of class c of the queued tile.
        of_class: Whether the bag is of class c.
        negative_class: Whether c is the negative class.
    """
    if of_class:
        order = torch.relu(-top) + torch.relu(other)
        return order if negative_class else order + torch.relu(other - top)
    order = torch.relu(top)
    return order + (torch.relu(-other) if negative_class else torch.relu(top - other))
