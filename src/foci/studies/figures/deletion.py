"""Deletion curves: mean loss of the label's probability when the top K tiles are removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foci.metrics.curve.deletion import PAPER_COUNTS
from foci.studies.figures.curves import COLOUR_OF, LINES, NAME_OF
from foci.studies.figures.drawing import StudyFigure, grid_of, legend_below
from foci.studies.readings.measures import Measure, Place
from foci.studies.readings.numbers import StudyNumbers
from foci.studies.readings.values import Value
from foci.studies.tables.naming import shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Drops = dict[tuple[str, str, str, int], Value]


def deletion_curves(numbers: StudyNumbers) -> StudyFigure | None:
    """Backbones x cohorts: mean drop at the paper's counts, error bars of one std over seeds."""
    found: Drops = {}
    for cohort in numbers.cohorts:
        for name in numbers.backbones:
            for ranking, _ in LINES:
                for k in PAPER_COUNTS:
                    value = numbers.value(Place(cohort, name), Measure("drop", ranking, k=k))
                    if value.mean is not None:
                        found[cohort, name, ranking, k] = value
    if not found:
        return None
    return StudyFigure(
        label="deletion",
        caption="Mean loss of the label's probability when the first K tiles are removed, over "
        "the test slides that have more than K tiles; bars: one standard deviation over seeds.",
        columns=("cohort", "backbone", "ranking", "k", "drop", "std", "seeds"),
        rows=[(*place, value.mean, value.std, value.n) for place, value in found.items()],
        draw=lambda: _draw(numbers, found),
    )


def _draw(numbers: StudyNumbers, found: Drops) -> Figure:
    from matplotlib.lines import Line2D

    size = len(numbers.backbones), len(numbers.cohorts)
    figure, panels = grid_of(*size, 1.0, sharex=True)
    for row, name in enumerate(numbers.backbones):
        for column, cohort in enumerate(numbers.cohorts):
            axes = panels[row][column]
            axes.axhline(0, color="#666666", lw=0.6)
            for ranking, style in LINES:
                known = [k for k in PAPER_COUNTS if (cohort, name, ranking, k) in found]
                values = [found[cohort, name, ranking, k] for k in known]
                if not values:
                    continue
                axes.errorbar(
                    known,
                    [value.mean for value in values],
                    [value.std or 0.0 for value in values],
                    ls=style,
                    color=COLOUR_OF[ranking],
                    marker="o",
                    ms=2.5,
                    elinewidth=0.7,
                )
            axes.set_xscale("log", base=2)
            axes.set_xticks(PAPER_COUNTS, [str(k) for k in PAPER_COUNTS])
            axes.minorticks_off()
            if row == 0:
                axes.set_title(shown(cohort))
            if column == 0:
                axes.set_ylabel(shown(name))
            if row == size[0] - 1:
                axes.set_xlabel("tiles removed, K")
    figure.supylabel("mean loss of the label's probability", fontsize=7)
    handles = [
        Line2D(
            [], [], ls=style, color=COLOUR_OF[ranking], marker="o", ms=2.5, label=NAME_OF[ranking]
        )
        for ranking, style in LINES
    ]
    legend_below(figure, handles)
    return figure
