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

import numpy as np
import torch
from numpy.typing import NDArray
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
        """Recheck probabilities ``[O, J, C]`` on the CPU of several curves of one bag, in place."""
        if not self.thresholds or features.dtype == torch.float64:
            return probabilities
        near = self._near(probabilities.numpy(), features.dtype)
        for place in np.flatnonzero(near.any(axis=1)).tolist():
            self._replace(near[place], probabilities[place], features, curves[place])
        return probabilities

    def _near(self, probabilities: NDArray[np.float64], dtype: torch.dtype) -> NDArray[np.bool_]:
        """Steps ``[O, J]`` at which rounding might move a crossing or a flip."""
        half = dtype in (torch.float16, torch.bfloat16)
        margin, tie = (_MARGIN_HALF, _TIE_HALF) if half else (_MARGIN_SINGLE, _TIE_SINGLE)
        by_class = np.ascontiguousarray(np.moveaxis(probabilities, -1, 0))  # [C, O, J]
        leading = by_class.max(axis=0) - by_class < tie
        near: NDArray[np.bool_] = leading.sum(axis=0) > 1
        for threshold in self.thresholds:
            near |= (np.abs(by_class - threshold) < margin).any(axis=0)
        return near

    def _replace(
        self,
        near: NDArray[np.bool_],
        probabilities: Tensor,
        features: Tensor,
        prefixes: Prefixes,
    ) -> None:
        """Compute the steps ``[J]`` that are marked again, in place."""
        rows = torch.from_numpy(np.flatnonzero(near))
        sizes = prefixes.sizes[rows.to(features.device)]
        # beyond N tiles in all, embedding the bag once more is cheaper than every subset
        if self.closed_form and int(sizes.sum()) > len(features):
            nested = features[prefixes.sequence[: int(sizes.max())]]
            probabilities[rows] = self._exact(nested, sizes).cpu()
            return
        for row in rows.tolist():
            probabilities[row] = self._exact(features[prefixes.subset(row)]).cpu()

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
