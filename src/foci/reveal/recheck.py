"""Recompute probabilities near a threshold or a tie in float64.

Single precision, batch size and device shift a probability by about 1e-6. Where it lies that close
to an operating confidence, or where the two leading classes lie that close to each other, the
subset is forwarded again in float64, so that rounding can move neither a crossing nor a flip.

A curve of thousands of counts may stay near a threshold for long. Of its counts an audit asks again
only for those that could be the first to decide, from tiles that are embedded in float64 once per
bag (:meth:`foci.reveal.EmbeddedBag.exact_curve`).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor

from foci.backbones import Backbone
from foci.backbones.freezing import device_and_dtype, to_model
from foci.reveal.engines import Prefixes

_MARGIN_SINGLE, _MARGIN_HALF = 1e-4, 5e-2
_TIE_SINGLE, _TIE_HALF = 2e-5, 5e-2
"""Largest gap between two leading classes that rounding might close; single precision has been
seen to shift a gap by 1e-6."""


class Float64Recheck:
    """Replaces probabilities near a threshold or a tie by their float64 values.

    Near a threshold means that the probability of any class is; several thresholds cost no more
    than the counts that lie near one of them.

    Args:
        backbone: Copied in float64 the first time it is needed. A model that cannot be copied, or
            cannot compute in float64 (a foreign callable with a float32 constant inside), is asked
            in its own precision, still one subset at a time and in bag order.
        thresholds: The confidences that matter; none switches the recheck off, also for ties.
        closed_form: Many subsets of one bag may be computed together by the model's ``prefixes``.
    """

    def __init__(
        self, backbone: Backbone, thresholds: tuple[float, ...], *, closed_form: bool = False
    ) -> None:
        self.backbone, self.thresholds = backbone, thresholds
        self.closed_form = closed_form
        self._double: Backbone | None = None

    def __call__(
        self, probabilities: Tensor, features: Tensor, curves: Sequence[Prefixes]
    ) -> Tensor:
        """Recheck probabilities ``[O, J, C]`` of several curves of one bag, in place."""
        if not self.thresholds or features.dtype == torch.float64:
            return probabilities
        near = self._near(probabilities.flatten(0, 1), features.dtype).view(len(curves), -1)
        for place in near.any(dim=1).nonzero().flatten().tolist():
            self._replace(near[place], probabilities[place], features, curves[place])
        return probabilities

    def _near(self, probabilities: Tensor, dtype: torch.dtype) -> Tensor:
        """Steps ``[b]`` at which rounding might move a crossing or a flip."""
        half = dtype in (torch.float16, torch.bfloat16)
        thresholds = probabilities.new_tensor(self.thresholds)
        distance = (probabilities.unsqueeze(-1) - thresholds).abs().amin(dim=(-1, -2))
        near = distance < (_MARGIN_HALF if half else _MARGIN_SINGLE)
        if probabilities.shape[-1] > 1:
            leading = probabilities.topk(2, dim=-1).values
            near |= leading[:, 0] - leading[:, 1] < (_TIE_HALF if half else _TIE_SINGLE)
        return near

    def _replace(
        self, near: Tensor, probabilities: Tensor, features: Tensor, prefixes: Prefixes
    ) -> None:
        """Compute the steps ``[J]`` that are marked again, in place."""
        rows = near.nonzero().flatten()
        sizes = prefixes.sizes[rows]
        # beyond N tiles in all, embedding the bag once more is cheaper than every subset
        if self.closed_form and int(sizes.sum()) > len(features):
            nested = features[prefixes.sequence[: int(sizes.max())]]
            probabilities[rows] = self._exact(nested, sizes)
            return
        for row in rows.tolist():
            probabilities[row] = self._exact(features[prefixes.subset(row)])

    def _exact(self, features: Tensor, sizes: Tensor | None = None) -> Tensor:
        """Probabilities by the float64 copy, or by the model where it has none.

        Of all tiles, or of the first tiles for each of ``sizes``.
        """
        return _probabilities(self.double(features[:1]), features, sizes)

    def double(self, features: Tensor) -> Backbone:
        """The float64 copy, or the model where it has none; tried on features ``[n, D]``."""
        if self._double is None:
            try:
                self._double = copy.deepcopy(self.backbone).double().eval()
                _probabilities(self._double, features, None)
            except Exception:
                self._double = self.backbone
        return self._double

    def margin(self, dtype: torch.dtype) -> float:
        """Largest distance from a threshold or a tie that rounding might close; 0 in float64."""
        if not self.thresholds or dtype == torch.float64:
            return 0.0
        return _TIE_HALF if dtype in (torch.float16, torch.bfloat16) else _TIE_SINGLE


def _probabilities(model: Backbone, features: Tensor, sizes: Tensor | None) -> Tensor:
    with torch.autocast(device_and_dtype(model)[0].type, enabled=False):
        x = to_model(features, model)
        logits = model(x) if sizes is None else model.prefixes(model.embed(x), sizes)
        return torch.softmax(logits.double(), dim=-1)
