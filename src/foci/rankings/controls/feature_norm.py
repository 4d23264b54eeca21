"""The length of a feature vector: what any encoder gives away without a classifier."""

from __future__ import annotations

import torch
from torch import Tensor

from foci.rankings.registry import ranking
from foci.reveal.embedded_bag import EmbeddedBag


@ranking("feature-norm")
def feature_norm(bag: EmbeddedBag) -> Tensor:
    r"""L2 norm of the feature, :math:`\lVert x_i \rVert_2`.

    The pre-filter of the paper keeps tiles by this number.
    """
    norms: Tensor = torch.linalg.vector_norm(bag.features.double(), dim=-1)
    return norms
