"""Every ranking of an audit in every view, at one threshold and budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from foci.audits.budget import within
from foci.audits.curves import CurveTable
from foci.audits.measured import Measured, measure
from foci.audits.reading import Reading, View
from foci.audits.slides import AuditedSlide
from foci.audits.views import Population, populations


@dataclass(frozen=True, eq=False)
class Measurement:
    """The curves within the budget, and what was measured on them.

    Attributes:
        curves: Cut at the largest count.
        views: The slides of every view.
        measured: By view and ranking.
    """

    curves: CurveTable
    views: dict[View, Population]
    measured: dict[View, dict[str, Measured]]


def measure_all(
    curves: CurveTable, slides: Sequence[AuditedSlide], classes: Sequence[str], reading: Reading
) -> Measurement:
    """Measure every slide under every ranking.

    Args:
        curves: The stored curves.
        slides: The slides that have curves.
        classes: Class names, in the model's order.
        reading: Threshold and budget.
    """
    views = populations(curves, slides, classes)
    revealed = within(curves, reading.k_max)
    measured = {
        view: {name: measure(revealed, name, group, reading) for name in revealed.rankings}
        for view, group in views.items()
    }
    return Measurement(revealed, views, measured)
