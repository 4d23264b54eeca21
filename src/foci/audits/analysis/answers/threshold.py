"""Confidence that counts as recovered: one for all slides, or a share of each slide's own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foci.audits.analysis.slides.views import ViewSlides
from foci.audits.profiles import SHARES
from foci.audits.settings import AnalysisSettings
from foci.metrics.inputs import Floats, Marks

_FEW = 1 / 3


@dataclass(frozen=True, order=True)
class Threshold:
    """A confidence, absolute or relative to the full bag.

    Attributes:
        value: The confidence, or the share of the full bag's own confidence.
        relative: Whether ``value`` is such a share. It is defined on every slide, so that every
            slide counts as decided.
    """

    value: float
    relative: bool = False

    def needed(self, group: ViewSlides) -> Floats:
        """``[S]`` probability that each slide has to reach."""
        return self.value * group.sure if self.relative else np.full(len(group), self.value)

    def decided(self, group: ViewSlides) -> Marks:
        """Mark the slides whose full bag gives its prediction at least this probability."""
        if self.relative:
            return np.ones(len(group), dtype=np.bool_)
        marks: Marks = group.full.max(axis=1) >= self.value
        return marks


def absolute(settings: AnalysisSettings) -> tuple[Threshold, ...]:
    """The audit's own threshold and those at which its answers are repeated."""
    return tuple(Threshold(value) for value in sorted({*settings.kappas, settings.kappa}))


def few_decided(group: ViewSlides, settings: AnalysisSettings) -> bool:
    """Whether the model is kappa sure of fewer than a third of the slides."""
    return len(group) > 0 and float(Threshold(settings.kappa).decided(group).mean()) < _FEW


def relative(group: ViewSlides, settings: AnalysisSettings) -> tuple[Threshold, ...]:
    """Shares of each slide's own confidence: where asked for, and where few slides are decided."""
    wanted = settings.relative or few_decided(group, settings)
    return tuple(Threshold(share, relative=True) for share in (SHARES if wanted else ()))
