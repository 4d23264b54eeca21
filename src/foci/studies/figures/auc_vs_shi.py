"""fig:auc_vs_shi: does slide-level AUC tell how much a selector saves?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from foci.studies.figures.drawing import COLOURS, MARKERS, StudyFigure
from foci.studies.readings.measures import Measure, Place
from foci.studies.readings.numbers import StudyNumbers
from foci.studies.tables.naming import shown
from foci.studies.tables.srp.shi import shi_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Point = tuple[str, str, float, float, int]


def auc_vs_shi(numbers: StudyNumbers) -> StudyFigure | None:
    """One point per backbone and cohort; None where none has both numbers."""
    points: list[Point] = []
    for backbone in numbers.backbones:
        for cohort in numbers.cohorts:
            place = Place(cohort, backbone)
            auc, saving = numbers.value(place, Measure("auc")).mean, shi_of(numbers, place)
            if auc is not None and saving.mean is not None:
                points.append((backbone, cohort, auc, saving.mean, saving.n))
    if not points:
        return None
    return StudyFigure(
        label="auc_vs_shi",
        caption="Slide-level AUC of the full bag (test slides) against SHI, means over seeds. "
        "Colour: backbone; marker: cohort. Above 0 the selector needs fewer tiles than the "
        "backbone's own ranking.",
        columns=("backbone", "cohort", "auc", "shi", "seeds"),
        rows=points,
        draw=lambda: _draw(numbers, points),
    )


def _draw(numbers: StudyNumbers, points: list[Point]) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    figure = Figure(figsize=(4.6, 3.2), layout="constrained")
    axes = figure.subplots()
    colours = dict(zip(numbers.backbones, COLOURS * 3, strict=False))
    markers = dict(zip(numbers.cohorts, MARKERS * 3, strict=False))
    axes.axhline(0, color="#666666", lw=0.7)
    for backbone, cohort, auc, saving, _ in points:
        axes.plot(
            auc,
            saving,
            markers[cohort],
            color=colours[backbone],
            ms=5.5,
            mec="white",
            mew=0.5,
        )
    axes.set_xlabel("AUC, full bag")
    axes.set_ylabel("SHI (share of tiles saved)")
    handles = [
        Line2D([], [], marker="o", ls="", color=colour, label=shown(name), ms=4.5)
        for name, colour in colours.items()
    ]
    handles += [
        Line2D([], [], marker=marker, ls="", color="#333333", mfc="none", label=shown(name), ms=4.5)
        for name, marker in markers.items()
    ]
    figure.legend(handles=handles, loc="outside right upper")
    return figure
