"""Rank by the L2 norm of the feature: what the encoder alone shows."""

from __future__ import annotations

import torch
from torch import Tensor

from foci.rankings.registry import ranking
from foci.reveal import EmbeddedBag


@ranking("feature-norm")
def feature_norm(bag: EmbeddedBag) -> Tensor:
    r"""L2 norm of the feature, :math:`\lVert x_i \rVert_2`.

    The paper's pre-filter selects tiles by it.
    """
    norms: Tensor = torch.linalg.vector_norm(bag.features.double(), dim=-1)
    return norms
