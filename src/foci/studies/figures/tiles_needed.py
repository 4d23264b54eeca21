"""Distribution of K: share of slides that have reached kappa after K tiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from foci.metrics.inputs import Floats
from foci.studies.figures.curves import COLOUR_OF, LINES, NAME_OF, drawn_counts
from foci.studies.figures.drawing import StudyFigure, counts_axis, grid_of, legend_below
from foci.studies.readings.measures import Place
from foci.studies.readings.numbers import StudyNumbers
from foci.studies.tables.naming import shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Shares = dict[tuple[str, str, str], Floats]


def tiles_needed(numbers: StudyNumbers, kappa: float, k_max: int) -> StudyFigure | None:
    """Backbones x cohorts; the slides of all seeds are pooled, misses never reach."""
    found: Shares = {}
    for cohort in numbers.cohorts:
        for name in numbers.backbones:
            for ranking, _ in LINES:
                read = numbers.read(Place(cohort, name)).values()
                counts = [one.msk[ranking] for one in read if ranking in one.msk]
                if counts:
                    found[cohort, name, ranking] = _reached(np.concatenate(counts), k_max)
    if not found:
        return None
    rows = [
        (*place, int(k), float(shares[k - 1]))
        for place, shares in found.items()
        for k in drawn_counts(k_max)
    ]
    return StudyFigure(
        label="k_distribution",
        caption="Distribution of K: share of test slides whose label reaches "
        f"kappa = {kappa:g} within K tiles, all seeds pooled; of random orders, the first. The "
        "height at the right end is Reach.",
        columns=("cohort", "backbone", "ranking", "k", "share"),
        rows=rows,
        draw=lambda: _draw(numbers, found, k_max),
    )


def _reached(counts: Floats, k_max: int) -> Floats:
    """Share of the slides with a count of at most 1, 2, ..., K_max."""
    known = np.sort(counts[~np.isnan(counts)])
    shares: Floats = np.searchsorted(known, np.arange(1, k_max + 1), side="right") / len(counts)
    return shares


def _draw(numbers: StudyNumbers, found: Shares, k_max: int) -> Figure:
    from matplotlib.lines import Line2D

    size = len(numbers.backbones), len(numbers.cohorts)
    figure, panels = grid_of(*size, 1.0, sharex=True, sharey=True)
    for row, name in enumerate(numbers.backbones):
        for column, cohort in enumerate(numbers.cohorts):
            axes = panels[row][column]
            for ranking, style in LINES:
                shares = found.get((cohort, name, ranking))
                if shares is not None:
                    ks = drawn_counts(k_max)
                    axes.step(ks, shares[ks - 1], style, where="post", color=COLOUR_OF[ranking])
                    counts_axis(axes, k_max)
            axes.set_ylim(0, 1.02)
            if row == 0:
                axes.set_title(shown(cohort))
            if column == 0:
                axes.set_ylabel(shown(name))
            if row == size[0] - 1:
                axes.set_xlabel("tiles revealed, K")
    figure.supylabel("share of slides that have reached kappa", fontsize=7)
    handles = [
        Line2D([], [], ls=style, color=COLOUR_OF[ranking], label=NAME_OF[ranking])
        for ranking, style in LINES
    ]
    legend_below(figure, handles)
    return figure
