"""Crossings that rounding must not move.

Single precision, batch size and device shift a probability by about 1e-6. Where it lies that
close to the operating confidence, the subset is forwarded again alone and in float64.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from foci.backbones import Backbone
from foci.reveal.nested import Nested

_MARGIN_SINGLE, _MARGIN_HALF = 1e-4, 5e-2


class Arbiter:
    """Replaces probabilities near a threshold by their float64 values.

    Args:
        backbone: Copied in float64 the first time it is needed. What cannot be copied (a foreign
            callable) judges in its own precision, still alone and in bag order.
        thresholds: The confidences that matter.
        autocast: Half precision needs a wider margin.
    """

    def __init__(
        self,
        backbone: Backbone,
        thresholds: tuple[float, ...],
        autocast: torch.dtype | None = None,
    ) -> None:
        self.backbone, self.thresholds = backbone, thresholds
        self.margin = _MARGIN_SINGLE if autocast is None else _MARGIN_HALF
        self._judge: Backbone | None = None

    def __call__(
        self, probabilities: Tensor, features: Tensor, nested: Nested, first: int
    ) -> Tensor:
        """Settle a block of steps that starts at step ``first``."""
        if not self.thresholds or features.dtype == torch.float64:
            return probabilities
        marks = probabilities.new_tensor(self.thresholds)
        near = (probabilities.unsqueeze(-1) - marks).abs().amin(dim=(-1, -2)) < self.margin
        for row in near.nonzero().flatten().tolist():
            subset = features[nested.subset(first + row)]
            probabilities[row] = self._decide(subset)
        return probabilities

    def _decide(self, subset: Tensor) -> Tensor:
        judge = self._double()
        place = next(iter(judge.parameters()), subset)
        with torch.autocast(subset.device.type, enabled=False):
            return torch.softmax(judge(subset.to(place.dtype)).double(), dim=-1)

    def _double(self) -> Backbone:
        if self._judge is None:
            try:
                self._judge = copy.deepcopy(self.backbone).double().eval()
            except (TypeError, RuntimeError, AttributeError):
                self._judge = self.backbone
        return self._judge
