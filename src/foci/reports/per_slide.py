"""Every slide of an audit under every ranking, read once for table and slide views."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foci.audits import Audit, CurveTable
from foci.audits.budget import within
from foci.audits.measured import Measured, measure
from foci.audits.reading import Reading, View
from foci.audits.views import Population, populations

PREFERRED = ("selector", "native")


@dataclass(frozen=True, eq=False)
class PerSlide:
    """The curves within the budget, and what was measured on them.

    Attributes:
        curves: Cut at the largest count.
        views: The slides of every view.
        measured: By view and ranking.
    """

    curves: CurveTable
    views: dict[View, Population]
    measured: dict[View, dict[str, Measured]]

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


def per_slide(audit: Audit, reading: Reading) -> PerSlide:
    """Measure every slide at a threshold and a budget."""
    views = populations(audit.curves, audit.slides, audit.manifest["classes"])
    curves = within(audit.curves, reading.k_max)
    measured = {
        view: {name: measure(curves, name, group, reading) for name in curves.rankings}
        for view, group in views.items()
    }
    return PerSlide(curves, views, measured)
