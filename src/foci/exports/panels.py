"""Panels of a figure: tissue with outlined tiles and scale bar, and pictures of the first tiles."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from foci.exports.ranked import RankedColumn, RankedSlide
from foci.exports.tissue import CROPS, Tissue
from foci.slides.pictures import Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import SubplotSpec

WIDTH = 7.2
"""Inches of a figure: a printed page, both columns."""

_NUMBERED = 3
_ROOM_FOR_NUMBER = 12
"""Points: the number of a tile at least this wide stands on it, otherwise above it."""

_ACROSS = 4


def draw_overview(
    axes: Axes, ranked: RankedSlide, column: RankedColumn, tissue: Tissue, colour: str
) -> None:
    """The slide, the first tiles outlined, annotated tiles dotted, and a scale bar."""
    box = tissue.box
    edges = (box.x, box.x + box.width, box.y + box.height, box.y)
    if tissue.overview is not None:
        axes.imshow(tissue.overview, extent=edges, interpolation="antialiased")
    else:
        axes.add_collection(_squares(ranked, np.arange(len(ranked.tiles)), "#d0ccc4", 0.4))
    axes.set_xlim(*edges[:2])
    axes.set_ylim(*edges[2:])
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.add_collection(_squares(ranked, column.order, "black", 1.5))
    axes.add_collection(_squares(ranked, column.order, colour, 0.8))
    if ranked.witness is not None:
        centres = ranked.corners[ranked.witness] + ranked.side / 2
        axes.scatter(
            centres[:, 0], centres[:, 1], s=1.2, c="white", edgecolors="black", linewidths=0.2
        )
    room = axes.get_position().width * WIDTH * 72 * ranked.side / box.width
    inside = room > _ROOM_FOR_NUMBER
    for rank, at in enumerate(column.order[:_NUMBERED], 1):
        x, y = ranked.corners[at]
        axes.annotate(
            str(rank),
            (x + ranked.side / 2, y + (ranked.side / 2 if inside else 0)),
            xytext=(0, 0 if inside else 5),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=6,
            fontweight="bold",
            bbox={"boxstyle": "round,pad=0.15", "fc": colour, "ec": "black", "lw": 0.4},
        )
    axes.set_title(_heading(column), fontsize=7)
    if tissue.mpp is not None:
        _scale_bar(axes, tissue, tissue.mpp)


def draw_crops(
    figure: Figure,
    place: SubplotSpec,
    ranked: RankedSlide,
    column: RankedColumn,
    crops: list[Picture],
    colour: str,
) -> None:
    """Pictures of the first tiles in order, each with its rank and delta p."""
    grid = place.subgridspec(-(-CROPS // _ACROSS), _ACROSS, wspace=0.05, hspace=0.05)
    for at, picture in enumerate(crops):
        axes = figure.add_subplot(grid[at // _ACROSS, at % _ACROSS])
        axes.imshow(picture)
        axes.set_xticks([])
        axes.set_yticks([])
        for spine in axes.spines.values():
            spine.set_edgecolor(colour)
            spine.set_linewidth(1.2)
        star = "*" if ranked.witness is not None and ranked.witness[column.order[at]] else ""
        drop = column.delta_p[at]
        said = "" if math.isnan(drop) else f" Δp {round(drop, 2) + 0.0:.2f}"  # never -0.00
        axes.set_title(f"#{at + 1}{star}{said}", fontsize=5, pad=1.5)


def nice_length(widest: float) -> float:
    """The largest of 1, 2 and 5 times a power of ten that is not above ``widest``.

    >>> nice_length(730.0), nice_length(1400.0), nice_length(4.9)
    (500.0, 1000.0, 2.0)
    """
    power = 10.0 ** math.floor(math.log10(widest))
    return max(step * power for step in (1, 2, 5) if step * power <= widest)


def _heading(column: RankedColumn) -> str:
    reached = "κ never reached" if column.msk is None else f"MSK {column.msk}"
    return f"{column.name}: first {len(column)} tiles ({reached})"


def _squares(ranked: RankedSlide, tiles: Any, colour: str, width: float) -> Any:
    from matplotlib.collections import PolyCollection

    ring = np.array([[0, 0], [1, 0], [1, 1], [0, 1]]) * ranked.side
    outlines = ranked.corners[tiles][:, None, :] + ring
    return PolyCollection(
        list(outlines), facecolors="none", edgecolors=colour, linewidths=width, joinstyle="miter"
    )


def _scale_bar(axes: Axes, tissue: Tissue, mpp: float) -> None:
    """A bar of a round length at the bottom left, at most a quarter of the width."""
    box = tissue.box
    length = nice_length(box.width * mpp / 4)
    text = f"{length / 1000:g} mm" if length >= 1000 else f"{length:g} µm"
    left, bottom = box.x + 0.03 * box.width, box.y + 0.97 * box.height
    right = left + length / mpp
    axes.plot([left, right], [bottom, bottom], color="white", lw=3.2, solid_capstyle="butt")
    axes.plot([left, right], [bottom, bottom], color="black", lw=1.8, solid_capstyle="butt")
    axes.annotate(
        text,
        ((left + right) / 2, bottom),
        xytext=(0, 3),
        textcoords="offset points",
        ha="center",
        fontsize=6,
        bbox={"boxstyle": "round,pad=0.1", "fc": "white", "ec": "none", "alpha": 0.8},
    )
