"""fig:srp_curve, fig:srp_extended: mean probability of the label as tiles are revealed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from foci.metrics.inputs import Floats, Integers
from foci.studies.figures.drawing import (
    COLOURS,
    NATIVE_COLOUR,
    RANDOM_COLOUR,
    SELECTOR_COLOUR,
    StudyFigure,
    counts_axis,
    grid_of,
    legend_below,
)
from foci.studies.readings.measures import NATIVE, RANDOM, SELECTOR, Place
from foci.studies.readings.numbers import StudyNumbers
from foci.studies.tables.naming import WITH, primary, shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DATA = ("cohort", "backbone", "ranking", "k", "mean", "std", "seeds")
LINES = ((NATIVE, "-"), (SELECTOR, "--"), (RANDOM, ":"))
COLOUR_OF = {NATIVE: NATIVE_COLOUR, SELECTOR: SELECTOR_COLOUR, RANDOM: RANDOM_COLOUR}
NAME_OF = {NATIVE: "own ranking", SELECTOR: "selector", RANDOM: "random order"}


@dataclass(frozen=True, eq=False)
class SeedBand:
    """Mean curve over seeds at the counts of :func:`drawn_counts`, with its standard deviation."""

    ks: Integers
    mean: Floats
    std: Floats
    seeds: int


def band(numbers: StudyNumbers, place: Place, ranking: str) -> SeedBand | None:
    """Mean and population standard deviation of the seeds' mean curves; None without any."""
    curves = [one.curves[ranking] for one in numbers.read(place).values() if ranking in one.curves]
    if not curves:
        return None
    ks = drawn_counts(min(map(len, curves)))
    table = np.stack([curve[ks - 1] for curve in curves])
    return SeedBand(ks, table.mean(axis=0), table.std(axis=0), len(curves))


def drawn_counts(k_max: int) -> Integers:
    """Every count up to 32, then ever fewer: what a logarithmic axis can show.

    >>> drawn_counts(80)[-9:].tolist()
    [40, 44, 48, 52, 56, 60, 64, 72, 80]
    """
    steps = [np.arange(1, 33)]
    start = 32
    while start < k_max:
        steps.append(np.arange(start + start // 8, 2 * start + 1, start // 8))
        start *= 2
    every = np.concatenate(steps)
    kept: Integers = np.unique(np.append(every[every <= k_max], k_max))
    return kept


def srp_curve(numbers: StudyNumbers, kappa: float) -> StudyFigure | None:
    """One panel per cohort: every backbone's own ranking, and the primary backbone's selector."""
    chosen = primary(numbers.backbones)
    lines = [(name, NATIVE) for name in numbers.backbones] + [(chosen, SELECTOR), (chosen, RANDOM)]
    found = {
        (cohort, name, ranking): band(numbers, Place(cohort, name), ranking)
        for cohort in numbers.cohorts
        for name, ranking in lines
    }
    if not any(found.values()):
        return None

    def draw() -> Figure:
        from matplotlib.lines import Line2D

        figure, panels = grid_of(1, len(numbers.cohorts), 2.3, sharey=True)
        colours = dict(zip(numbers.backbones, COLOURS * 3, strict=False))
        handles: dict[str, Any] = {}
        for axes, cohort in zip(panels[0], numbers.cohorts, strict=True):
            for name, ranking in lines:
                one = found[cohort, name, ranking]
                if one is None:
                    continue
                colour = RANDOM_COLOUR if ranking == RANDOM else colours[name]
                style = dict(LINES)[ranking]
                axes.plot(one.ks, one.mean, style, color=colour, lw=1.8 if ranking != NATIVE else 1)
                label = shown(name) + {
                    NATIVE: "", SELECTOR: f" {WITH}", RANDOM: " random order",
                }[ranking]  # fmt: skip
                handles.setdefault(label, Line2D([], [], ls=style, color=colour, label=label))
                counts_axis(axes, int(one.ks[-1]))
            axes.axhline(kappa, color="#333333", ls=(0, (1, 2)), lw=0.7)
            axes.set_title(shown(cohort))
            axes.set_xlabel("tiles revealed, K")
        panels[0][0].set_ylabel("mean probability of the label")
        legend_below(figure, list(handles.values()), 5)
        return figure

    return StudyFigure(
        label="srp_curve",
        caption="Mean probability of the label when the first K tiles are revealed, averaged over "
        f"test slides and seeds. Solid: own ranking of every backbone; dashed: {shown(chosen)} "
        f"with its selector; dotted grey: random orders; horizontal: kappa = {kappa:g}.",
        columns=DATA,
        rows=list(_rows(found)),
        draw=draw,
    )


def srp_extended(numbers: StudyNumbers, kappa: float) -> StudyFigure | None:
    """Backbones x cohorts: own ranking solid, selector dashed, band of one std over seeds."""
    found = {
        (cohort, name, ranking): band(numbers, Place(cohort, name), ranking)
        for cohort in numbers.cohorts
        for name in numbers.backbones
        for ranking, _ in LINES
    }
    if not any(found.values()):
        return None

    def draw() -> Figure:
        from matplotlib.lines import Line2D

        figure, panels = grid_of(
            len(numbers.backbones), len(numbers.cohorts), 1.05, sharex=True, sharey=True
        )
        for row, name in enumerate(numbers.backbones):
            for column, cohort in enumerate(numbers.cohorts):
                axes = panels[row][column]
                for ranking, style in LINES:
                    one = found[cohort, name, ranking]
                    if one is not None:
                        low, high = one.mean - one.std, one.mean + one.std
                        axes.fill_between(
                            one.ks, low, high, color=COLOUR_OF[ranking], alpha=0.18, lw=0
                        )
                        axes.plot(one.ks, one.mean, style, color=COLOUR_OF[ranking])
                        counts_axis(axes, int(one.ks[-1]))
                if all(found[cohort, name, ranking] is None for ranking, _ in LINES):
                    axes.text(0.5, 0.5, "not run", ha="center", transform=axes.transAxes)
                axes.axhline(kappa, color="#333333", ls=(0, (1, 2)), lw=0.7)
                if row == 0:
                    axes.set_title(shown(cohort))
                if column == 0:
                    axes.set_ylabel(shown(name))
                if row == len(numbers.backbones) - 1:
                    axes.set_xlabel("tiles revealed, K")
        handles = [
            Line2D([], [], ls=style, color=COLOUR_OF[ranking], label=NAME_OF[ranking])
            for ranking, style in LINES
        ]
        figure.supylabel("mean probability of the label", fontsize=7)
        legend_below(figure, handles)
        return figure

    return StudyFigure(
        label="srp_extended",
        caption="Reveal curves of every backbone and cohort: mean probability of the label over "
        "test slides; solid: own ranking, dashed: selector, dotted: random orders; bands: one "
        f"standard deviation over seeds; horizontal: kappa = {kappa:g}.",
        columns=DATA,
        rows=list(_rows(found)),
        draw=draw,
    )


def _rows(found: dict[tuple[str, str, str], SeedBand | None]) -> Iterator[tuple[Any, ...]]:
    for (cohort, name, ranking), one in found.items():
        if one is not None:
            for k, mean, std in zip(one.ks, one.mean, one.std, strict=True):
                yield cohort, name, ranking, int(k), float(mean), float(std), one.seeds
