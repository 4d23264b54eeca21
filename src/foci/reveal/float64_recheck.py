"""Crossings that rounding must not move.

Single precision, batch size and device shift a probability by about 1e-6. Where it lies that
close to the operating confidence, the subset is forwarded again alone and in float64.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from foci.backbones import Backbone
from foci.backbones.freezing import placed
from foci.reveal.prefixes import Nested

_MARGIN_SINGLE, _MARGIN_HALF = 1e-4, 5e-2


class Arbiter:
    """Replaces probabilities near a threshold by their float64 values.

    Args:
        backbone: Copied in float64 the first time it is needed. What cannot be copied, or cannot
            compute in float64 (a foreign callable with a float32 constant inside), judges in its
            own precision, still alone and in bag order.
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
        self.half = autocast is not None
        self._judge: Backbone | None = None

    def __call__(
        self, probabilities: Tensor, features: Tensor, nested: Nested, first: int
    ) -> Tensor:
        """Settle a block of steps that starts at step ``first``."""
        if not self.thresholds or features.dtype == torch.float64:
            return probabilities
        half = self.half or features.dtype in (torch.float16, torch.bfloat16)
        margin = _MARGIN_HALF if half else _MARGIN_SINGLE
        marks = probabilities.new_tensor(self.thresholds)
        near = (probabilities.unsqueeze(-1) - marks).abs().amin(dim=(-1, -2)) < margin
        for row in near.nonzero().flatten().tolist():
            subset = features[nested.subset(first + row)]
            probabilities[row] = self._decide(subset)
        return probabilities

    def _decide(self, subset: Tensor) -> Tensor:
        if self._judge is None:
            try:
                self._judge = copy.deepcopy(self.backbone).double().eval()
                return self._ask(self._judge, subset)
            except Exception:
                self._judge = self.backbone
        return self._ask(self._judge, subset)

    @staticmethod
    def _ask(judge: Backbone, subset: Tensor) -> Tensor:
        with torch.autocast(subset.device.type, enabled=False):
            return torch.softmax(judge(placed(subset, judge)).double(), dim=-1)
