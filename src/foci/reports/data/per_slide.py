"""Every slide of an audit under every ranking, read once for table and slide views."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foci.audits import Audit
from foci.audits.analysis.per_slide import MeasuredSlides, measure_slides
from foci.audits.settings import AnalysisSettings

PREFERRED = ("selector", "native")


class PerSlide(MeasuredSlides):
    """What was measured, and which slides are hard."""

    @property
    def headline(self) -> str:
        """The ranking by which slides are hard or easy: the selector where there is one."""
        names = self.curves.rankings
        return next((name for name in PREFERRED if name in names), names[0])

    @property
    def hardest_first(self) -> NDArray[np.int64]:
        """Slides by tiles needed under :attr:`headline`, then by the area under the curve."""
        found = self.measured["prediction"][self.headline]
        needed, area = found.restricted.mean(axis=0), found.aukc.mean(axis=0)
        return np.lexsort((area, -needed)).astype(np.int64)


def per_slide(audit: Audit, settings: AnalysisSettings) -> PerSlide:
    """Measure every slide at a threshold and a budget."""
    found = measure_slides(audit.curves, audit.slides, audit.manifest["classes"], settings)
    return PerSlide(found.curves, found.views, found.measured)
