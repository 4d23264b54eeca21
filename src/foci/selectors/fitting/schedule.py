"""Learning-rate schedule: linear warm-up, then cosine decay."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, NonNegativeInt, PositiveInt

_MOST = 1e30  # a larger rate overflows single precision in AdamW


class Schedule(BaseModel):
    r"""Epochs, learning rate and batch size of a fit; the defaults are the paper's.

    .. math:: \eta(t) = \begin{cases}
       \eta_{\max}\,(t + 1) / W & t < W \\
       \eta_{\min} + \tfrac12 (\eta_{\max} - \eta_{\min})
       \big(1 + \cos \pi \tfrac{t - W}{T - 1 - W}\big) & t \ge W
       \end{cases}

    over the optimizer steps :math:`t = 0 \dots T - 1`, of which W warm up. The rate is a plain
    function of the step, not a scheduler of torch.optim: a resumed fit has no state to restore.

    Attributes:
        epochs: Passes over the training slides.
        warmup: Epochs of warm-up.
        peak: :math:`\eta_{\max}` of AdamW: a base rate of 1e-4, times 5 for the selector.
        floor: :math:`\eta_{\min}`: 1e-5 times 5.
        weight_decay: Of AdamW.
        batch_size: Bags per step, padded to the longest.
        patience: Stop after this many epochs without a better one; None for no early stopping.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    epochs: PositiveInt = 30
    warmup: NonNegativeInt = 5
    peak: Annotated[float, Field(gt=0, le=_MOST)] = 5e-4
    floor: Annotated[float, Field(ge=0, le=_MOST)] = 5e-5
    weight_decay: NonNegativeFloat = 0.3
    batch_size: PositiveInt = 2
    patience: PositiveInt | None = None

    def rate(self, step: int, steps_per_epoch: int) -> float:
        """Learning rate of one step, counted from 0 over all epochs.

        >>> [round(Schedule().rate(step, 10), 6) for step in (0, 49, 50, 299)]
        [1e-05, 0.0005, 0.0005, 5e-05]
        """
        warm = self.warmup * steps_per_epoch
        if step < warm:
            return self.peak * (step + 1) / warm
        way = (step - warm) / max(self.epochs * steps_per_epoch - 1 - warm, 1)
        return self.floor + 0.5 * (self.peak - self.floor) * (1 + math.cos(math.pi * way))
