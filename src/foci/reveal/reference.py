"""The slow way, which everything else must equal: one forward pass per count."""

from __future__ import annotations

import torch
from torch import Tensor

from foci.backbones import Backbone
from foci.reveal.nested import Nested


def logits_by_reference(backbone: Backbone, features: Tensor, nested: Nested) -> Tensor:
    """Forward the features of every subset alone, in bag order: ``[J, C]``."""
    rows = [backbone(features[nested.subset(step)]) for step in range(len(nested.sizes))]
    return torch.stack(rows)
