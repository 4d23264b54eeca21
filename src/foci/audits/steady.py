"""Whether a classifier gives one answer to one bag."""

from __future__ import annotations

import torch

from foci.backbones import Backbone
from foci.backbones.frozen import eval_mode
from foci.bags import Cohort
from foci.errors import FociError
from foci.selectors.frozen import full_logits

_TOLERANCE = 1e-4
"""In probability; sums on a GPU may differ in their last digits from one call to the next."""


def check_steady(backbone: Backbone, cohort: Cohort) -> None:
    """Ask twice for the first bag that can be read.

    A function may hide a module in training mode, whose dropout no eval mode from outside reaches.

    Raises:
        FociError: If the two answers differ by more than rounding.
    """
    for slide in cohort:
        try:
            x = cohort.store.bag(slide).x
            with eval_mode(backbone):
                logits = full_logits(backbone, [x, x])
        except FociError:  # the run will skip this slide and say why
            continue
        first, second = torch.softmax(logits.double(), dim=-1)
        digits = torch.finfo(logits.dtype).eps if logits.is_floating_point() else 0.0
        difference = float((first - second).abs().max())
        if difference > max(_TOLERANCE, 8 * digits):
            raise FociError(
                f"backbone {backbone.architecture}",
                f"the model gives two answers to one bag: on {slide.slide_id} its probabilities "
                f"differ by {difference:.2g}",
                "put it in eval mode (model.eval()), or switch off its randomness",
            )
        return
