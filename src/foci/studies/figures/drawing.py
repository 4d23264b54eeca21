"""How figures of a study look and are written: SVG, PDF and the data as CSV, equal bytes."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foci.errors import FociError
from foci.files.atomic import whole_file, write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 7.2
"""Inches: a printed page, both columns."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#4d4d4d")
"""Of backbones, in their order; told apart with every kind of colour vision."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
NATIVE_COLOUR, SELECTOR_COLOUR, RANDOM_COLOUR = "#0072b2", "#d55e00", "#8c8c8c"
_STYLE = {
    "font.size": 7,
    "font.family": "sans-serif",
    "axes.titlesize": 7.5,
    "axes.labelsize": 7,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 6.5,
    "lines.linewidth": 1.1,
    "svg.fonttype": "none",
    "svg.hashsalt": "foci",
    "pdf.fonttype": 42,
}


@dataclass(frozen=True, eq=False)
class StudyFigure:
    """A figure: what it shows in words, its data, and how to draw it.

    Attributes:
        label: The paper's LaTeX label without ``fig:``; also the name of its files.
        caption: What it shows, with axes and units.
        columns: Names of the data's columns.
        rows: The data, one line per point.
        draw: Draws it.
    """

    label: str
    caption: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]]
    draw: Callable[[], Figure]

    def to_csv(self) -> str:
        """The data behind the figure."""
        file = io.StringIO(newline="")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return file.getvalue()


def write_figure(figure: StudyFigure, folder: Path) -> None:
    """Write a figure as SVG and PDF, and its data as CSV."""
    undated: dict[str, dict[str, Any]] = {
        "svg": {"Date": None},
        "pdf": {"CreationDate": None, "ModDate": None},
    }
    with matplotlib().rc_context(_STYLE):
        drawn = figure.draw()
        for kind, metadata in undated.items():
            with whole_file(folder / f"{figure.label}.{kind}", durable=False) as path:
                drawn.savefig(path, format=kind, metadata=metadata)
    write_whole(folder / f"{figure.label}.csv", figure.to_csv(), durable=False)


def matplotlib() -> Any:
    """The library that draws, or one line on how to get it."""
    try:
        import matplotlib
    except ImportError as error:
        fix = "pip install 'foci-mil[plots]'"
        raise FociError("matplotlib", f"cannot be loaded ({error})", fix) from error
    return matplotlib


def grid_of(rows: int, columns: int, height: float, **how: Any) -> tuple[Figure, Any]:
    """A figure of panels that share their axes, ``[rows, columns]`` always two-dimensional.

    Args:
        rows: Number of rows.
        columns: Number of columns.
        height: Of one panel in inches.
        **how: Of :meth:`matplotlib.figure.Figure.subplots`.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height * rows + 0.55), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **how)


def counts_axis(axes: Any, k_max: int) -> None:
    """A logarithmic axis of tile counts, labelled 1, 4, 16, ..."""
    axes.set_xscale("log", base=2)
    ticks = [1]
    while ticks[-1] * 4 <= k_max:
        ticks.append(ticks[-1] * 4)
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()


def legend_below(figure: Figure, handles: Sequence[Any], columns: int = 8) -> None:
    """One legend for all panels, under them."""
    figure.legend(handles=list(handles), loc="outside lower center", ncols=columns)
