"""Check that a model is deterministic, and that its answer does not drift during a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from foci.backbones import Backbone
from foci.backbones.freezing import eval_mode, fingerprint
from foci.bags import Cohort
from foci.errors import ChangedError, FociError
from foci.progress import Progress, Sized
from foci.selectors.frozen import full_logits

T = TypeVar("T")

_TOLERANCE = 1e-4
"""Allowed difference in probability; GPU sums may differ in their last digits between calls."""


@dataclass(frozen=True, eq=False)
class DriftCheck:
    """A model's first answer to one bag, to be asked for again later.

    Attributes:
        backbone: The classifier.
        slide_id: The slide.
        x: ``[N, D]`` its features.
        first: ``[C]`` its logits.
        weights: Hash of the model's parameters and buffers.
    """

    backbone: Backbone
    slide_id: str
    x: Tensor
    first: Tensor
    weights: str

    def check(self, when: str) -> None:
        """Hash the weights and ask again.

        Raises:
            ChangedError: If the weights differ, or the probabilities by more than rounding.
        """
        if fingerprint(self.backbone) != self.weights:
            raise ChangedError(
                _named(self.backbone), "changed while it was audited", "leave it alone, try again"
            )
        with eval_mode(self.backbone):
            now = full_logits(self.backbone, [self.x])[0]
        gap = _gap(self.first, now)
        if gap > _allowed(now):
            raise ChangedError(
                _named(self.backbone),
                f"the model's answer drifts: on {self.slide_id} its probabilities {when} differ "
                f"by {gap:.2g} from those at the start",
                "make it forget what it has seen (counters, running statistics, caches)",
            )

    def halfway(self, progress: Progress) -> Progress:
        """A progress bar that also asks again when half of its items are done."""

        def checked(items: Sized[T], what: str) -> Iterator[T]:
            for step, item in enumerate(progress(items, what)):
                if step == len(items) // 2:
                    self.check("halfway through the run")
                yield item

        return checked


def check_deterministic(backbone: Backbone, cohort: Cohort) -> DriftCheck | None:
    """Check that the model gives the same output twice, on the first readable bag.

    A wrapped function may hide a module in training mode, and its dropout cannot be switched off
    from outside.

    Returns:
        The answer, for further checks during the run; None if no bag can be read.

    Raises:
        FociError: If the two outputs differ by more than rounding.
    """
    for slide in cohort:
        try:
            x = cohort.store.bag(slide).x
            with eval_mode(backbone):
                first, second = full_logits(backbone, [x, x])
        except FociError:  # the run will skip this slide and say why
            continue
        gap = _gap(first, second)
        if gap > _allowed(first):
            raise FociError(
                _named(backbone),
                f"the model gives two answers to one bag: on {slide.slide_id} its probabilities "
                f"differ by {gap:.2g}",
                "put it in eval mode (model.eval()), or switch off its randomness",
            )
        return DriftCheck(backbone, slide.slide_id, x, first, fingerprint(backbone))
    return None


def _gap(first: Tensor, second: Tensor) -> float:
    """Largest difference between two answers, in probability."""
    one, other = (torch.softmax(logits.double(), dim=-1) for logits in (first, second))
    return float((one - other).abs().max())


def _allowed(logits: Tensor) -> float:
    digits = torch.finfo(logits.dtype).eps if logits.is_floating_point() else 0.0
    return max(_TOLERANCE, 8 * digits)


def _named(backbone: Backbone) -> str:
    return f"backbone {backbone.architecture}"
