"""Recompute probabilities near a threshold in float64.

Single precision, batch size and device shift a probability by about 1e-6. Where it lies that
close to the operating confidence, the subset is forwarded again alone and in float64, so that
rounding cannot move a crossing.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from foci.backbones import Backbone
from foci.backbones.freezing import placed
from foci.reveal.prefixes import Prefixes

_MARGIN_SINGLE, _MARGIN_HALF = 1e-4, 5e-2


class Float64Recheck:
    """Replaces probabilities near a threshold by their float64 values.

    Args:
        backbone: Copied in float64 the first time it is needed. A model that cannot be copied, or
            cannot compute in float64 (a foreign callable with a float32 constant inside), is asked
            in its own precision, still one subset at a time and in bag order.
        thresholds: The confidences that matter; none switches the recheck off.
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
        self._double: Backbone | None = None

    def __call__(
        self, probabilities: Tensor, features: Tensor, prefixes: Prefixes, first: int
    ) -> Tensor:
        """Recheck probabilities ``[b, C]`` of consecutive steps, in place.

        Args:
            probabilities: Of the steps ``first``, ``first + 1``, ...
            features: ``[N, D]`` of the bag.
            prefixes: All steps of the curve.
            first: Number of the first step given.
        """
        if not self.thresholds or features.dtype == torch.float64:
            return probabilities
        half = self.half or features.dtype in (torch.float16, torch.bfloat16)
        margin = _MARGIN_HALF if half else _MARGIN_SINGLE
        marks = probabilities.new_tensor(self.thresholds)
        near = (probabilities.unsqueeze(-1) - marks).abs().amin(dim=(-1, -2)) < margin
        for row in near.nonzero().flatten().tolist():
            subset = features[prefixes.subset(first + row)]
            probabilities[row] = self._exact(subset)
        return probabilities

    def _exact(self, subset: Tensor) -> Tensor:
        if self._double is None:
            try:
                self._double = copy.deepcopy(self.backbone).double().eval()
                return self._forward(self._double, subset)
            except Exception:
                self._double = self.backbone
        return self._forward(self._double, subset)

    @staticmethod
    def _forward(model: Backbone, subset: Tensor) -> Tensor:
        with torch.autocast(subset.device.type, enabled=False):
            return torch.softmax(model(placed(subset, model)).double(), dim=-1)
