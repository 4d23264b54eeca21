"""Order-dependent classifiers without a mask: hidden tiles are not forwarded."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from foci.backbones.base import Backbone
from foci.errors import FociError


class OrderedBackbone(Backbone):
    """Base of order-dependent classifiers: masking forwards the present tiles, in bag order.

    A subclass defines ``classify`` for bags of one length, independently for every item; items
    with equally many tiles run together.
    """

    @abstractmethod
    def classify(self, tokens: Tensor) -> Tensor:
        """Tokens ``[B, n, d]``, all present, to logits ``[B, C]``."""

    def aggregate(
        self, tokens: Tensor, mask: Tensor | None = None, gate: Tensor | None = None
    ) -> Tensor:
        """See :meth:`Backbone.aggregate`; a gate is refused."""
        if gate is not None:
            raise FociError(
                self.architecture,
                "has no attention weight per tile that a gate could multiply",
                "use the gate site 'feature'",
            )
        if mask is None:
            mask = torch.ones(tokens.shape[:2], dtype=torch.bool, device=tokens.device)
        counts = mask.sum(dim=1)
        if bool((counts == 0).any()):
            raise FociError(self.architecture, "was given a bag without tiles", "keep at least one")
        rows, logits = [], []
        for count in sorted(set(counts.tolist())):
            members = (counts == count).nonzero().squeeze(1)
            present = tokens[members][mask[members]]
            rows.append(members)
            logits.append(self.classify(present.view(len(members), count, -1)))
        return torch.cat(logits)[torch.cat(rows).argsort()]
