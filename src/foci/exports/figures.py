"""Figure of one slide for print: rankings side by side on the tissue, and their first tiles.

:func:`look` reads the pictures of the slide, :func:`write_figure` draws them: one column per
ranking, its first K tiles outlined on the overview, and crops of the first of these below.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from foci.errors import FociError, SlideError
from foci.exports.tables import RankedColumn, RankedSlide
from foci.slides.image import Box, Picture, SlideImage, fitted, read_boxes
from foci.words import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import SubplotSpec

WIDTH = 7.2
"""Inches of a figure: a printed page, both columns."""

DPI = 300
OVERVIEW = 1400
"""Longer side of an overview in pixels: 300 per inch at the width of a printed panel."""

CROP = 256
CROPS = 8
"""Tiles that are shown as pictures, and the pixels of each."""

_CROPS_PER_ROW = 4
_NUMBERED = 3
_POINTS_FOR_NUMBER = 12
"""The number of a tile at least this wide stands on it, otherwise above it."""

_INCHES_OF_TEXT = 0.75
_STYLE: Any = {
    "font.size": 7,
    "font.family": "sans-serif",
    "svg.fonttype": "none",
    "svg.hashsalt": "foci",
    "pdf.fonttype": 42,
}
_UNDATED: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "ModDate": None},
    "svg": {"Date": None},
}


@dataclass(frozen=True, eq=False)
class Tissue:
    """What a figure shows of the slide.

    Attributes:
        box: The part of the slide that the overview covers.
        overview: Its picture; None where there is no image.
        crops: Pictures of the first tiles, by column.
        mpp: Micrometres per level-0 pixel; None where unknown.
        origin: Top-left corner of the scanned part.
    """

    box: Box
    overview: Picture | None
    crops: Mapping[str, list[Picture]]
    mpp: float | None
    origin: tuple[int, int]


def look(
    ranked: RankedSlide, image: Path | None, slide_mpp: float | None, *, pictures: bool
) -> Tissue:
    """Read the pictures of one slide, or without ``pictures`` only origin and resolution.

    Raises:
        SlideError: If the image cannot be read, or is not that of these tiles.
    """
    corners, side = ranked.corners, ranked.side
    box = extent(corners, side)
    if image is None:
        return Tissue(box, None, {}, slide_mpp, (0, 0))
    with SlideImage(image, slide_mpp) as slide:
        outside = ((corners < 0) | (corners + side > np.array(slide.size))).any(axis=1).sum()
        if outside:
            what = f"{outside} of {len(corners)} tiles lie outside the image"
            raise SlideError(image, what, "check that the features were made from this slide")
        origin = slide.bounds.x, slide.bounds.y
        if not pictures:
            return Tissue(box, None, {}, slide.mpp, origin)
        overview = np.asarray(slide.read(box, fitted(box, OVERVIEW)))
        crops = {}
        for column in ranked.columns:
            first = corners[column.order[:CROPS]].tolist()
            boxes = [Box(x, y, side, side) for x, y in first]
            crops[column.name] = list(read_boxes(slide, boxes, CROP))
        return Tissue(box, overview, crops, slide.mpp, origin)


def extent(corners: NDArray[np.int64], side: int) -> Box:
    """The rectangle around all tiles, with a margin.

    >>> extent(np.array([[100, 100], [300, 200]]), 100)
    Box(x=88, y=88, width=324, height=224)
    """
    low, high = corners.min(axis=0), corners.max(axis=0) + side
    margin = int(0.04 * (high - low).max())
    width, height = (high - low + 2 * margin).tolist()
    return Box(int(low[0]) - margin, int(low[1]) - margin, width, height)


def write_figure(ranked: RankedSlide, tissue: Tissue | None, path: Path, kind: str) -> None:
    """Draw a slide and write it as ``png``, ``pdf`` or ``svg``; equal input gives equal bytes.

    Without ``tissue``, where tiles have no positions, its curves are drawn.
    """
    try:
        import matplotlib
    except ImportError as error:
        fix = "pip install 'foci-mil[plots]'"
        raise FociError("matplotlib", f"cannot be loaded ({error})", fix) from error
    with matplotlib.rc_context(_STYLE):
        figure = draw_curves(ranked) if tissue is None else draw(ranked, tissue)
        figure.savefig(path, format=kind, dpi=DPI, metadata=_UNDATED[kind])


def draw(ranked: RankedSlide, tissue: Tissue) -> Figure:
    """One column per ranking: the first K tiles outlined on the tissue, then their pictures."""
    from matplotlib.figure import Figure

    columns = ranked.columns
    panel = WIDTH / len(columns)
    overview = min(panel * tissue.box.height / tissue.box.width, 1.3 * WIDTH / 2)
    crops = 0.0 if tissue.overview is None else 0.62 * panel
    figure = Figure(figsize=(WIDTH, overview + crops + _INCHES_OF_TEXT), layout="constrained")
    ratios = [overview, crops] if crops else [overview]
    grid = figure.add_gridspec(len(ratios), len(columns), height_ratios=ratios)
    for at, column in enumerate(columns):
        _draw_overview(figure.add_subplot(grid[0, at]), ranked, column, tissue)
        if crops:
            _draw_crops(figure, grid[1, at], ranked, column, tissue.crops[column.name])
    figure.suptitle(_title(ranked), fontsize=8)
    figure.supxlabel(textwrap.fill(_caption(ranked, tissue), 140), fontsize=6)
    return figure


def draw_curves(ranked: RankedSlide) -> Figure:
    """A slide whose tiles have no positions: p of its first K tiles, and without them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, 0.45 * WIDTH), layout="constrained")
    keep, remove = figure.subplots(1, 2, sharey=True)
    for axes, name in ((keep, "keep"), (remove, "remove")):
        axes.set_xscale("log")
        axes.set_ylim(-0.02, 1.02)
        axes.axhline(ranked.p, color="#9ca3af", lw=0.6, ls=":")
        axes.axhline(ranked.kappa, color="black", lw=0.6, ls="--")
        for column in ranked.columns:
            counts, values = getattr(column, name)
            axes.plot(counts, values, color=column.colour, lw=1.2, label=_told(column))
            if column.decisive is not None and column.decisive in counts:
                at = values[counts == column.decisive]
                axes.plot(column.decisive, at, "o", color=column.colour, ms=4, mec="white")
    keep.set_title("Keep test: the first K tiles alone", fontsize=7)
    remove.set_title("Remove test: without the first K tiles", fontsize=7)
    keep.set_ylabel(f"p of {ranked.predicted}")
    keep.legend(fontsize=6, frameon=False)
    for axes in (keep, remove):
        axes.set_xlabel("tiles K")
    figure.suptitle(_title(ranked), fontsize=8)
    caption = (
        f"Dashed: {ranked.kappa:g}, from which the model is sure; dotted: all tiles. Dots: the "
        "deciding tiles. The audit has no tile positions. Model-sufficient, not diagnostic."
    )
    figure.supxlabel(textwrap.fill(caption, 140), fontsize=6)
    return figure


def _told(column: RankedColumn) -> str:
    """A ranking and its deciding tiles, or why it has none."""
    if column.decisive is None:
        return f"{column.name}: {column.why_none}"
    return f"{column.name}: {counted(column.decisive, 'deciding tile')}"


def _title(ranked: RankedSlide) -> str:
    label = "" if ranked.slide.label is None else f", label {ranked.slide.label}"
    return (
        f"{ranked.slide.slide_id}: predicted {ranked.predicted} with p = {ranked.p:.3f} "
        f"from {len(ranked.tiles)} tiles{label}"
    )


def _caption(ranked: RankedSlide, tissue: Tissue) -> str:
    parts = ["Outlined: the first K tiles of each ranking, 1 to 3 numbered."]
    if tissue.crops and any((~np.isnan(column.delta_p)).any() for column in ranked.columns):
        parts.append("Δp: drop of p when the tiles up to this one are removed.")
    if ranked.witness is not None:
        parts.append("White dots: annotated tiles; * a picture of one.")
    if tissue.mpp is None:
        parts.append("No scale bar: the resolution is unknown.")
    parts.append("Model-sufficient, not diagnostic.")
    return " ".join(parts)


def _draw_overview(axes: Axes, ranked: RankedSlide, column: RankedColumn, tissue: Tissue) -> None:
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
    if len(column):
        axes.add_collection(_squares(ranked, column.order, "white", 1.8))
        axes.add_collection(_squares(ranked, column.order, column.colour, 1.0))
    if ranked.witness is not None:
        centres = ranked.corners[ranked.witness] + ranked.side / 2
        axes.scatter(
            centres[:, 0], centres[:, 1], s=1.2, c="white", edgecolors="black", linewidths=0.2
        )
    points = axes.get_position().width * WIDTH * 72 * ranked.side / box.width
    inside = points > _POINTS_FOR_NUMBER
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
            color="white",
            bbox={"boxstyle": "round,pad=0.15", "fc": column.colour, "ec": "white", "lw": 0.4},
        )
    reached = "κ never reached" if column.msk is None else f"MSK {column.msk}"
    shown = f"{column.name}: first {counted(len(column), 'tile')} ({reached})"
    axes.set_title(shown if len(column) else _told(column), fontsize=7, color=column.colour)
    if tissue.mpp is not None:
        _scale_bar(axes, box, tissue.mpp)


def _draw_crops(
    figure: Figure,
    place: SubplotSpec,
    ranked: RankedSlide,
    column: RankedColumn,
    crops: list[Picture],
) -> None:
    """Pictures of the first tiles in order, each with its rank and delta p."""
    grid = place.subgridspec(-(-CROPS // _CROPS_PER_ROW), _CROPS_PER_ROW, wspace=0.05, hspace=0.05)
    for at, picture in enumerate(crops):
        axes = figure.add_subplot(grid[at // _CROPS_PER_ROW, at % _CROPS_PER_ROW])
        axes.imshow(picture)
        axes.set_xticks([])
        axes.set_yticks([])
        for spine in axes.spines.values():
            spine.set_edgecolor(column.colour)
            spine.set_linewidth(1.2)
        star = "*" if ranked.witness is not None and ranked.witness[column.order[at]] else ""
        drop = column.delta_p[at]
        measured = "" if math.isnan(drop) else f" Δp {round(drop, 2) + 0.0:.2f}"  # never -0.00
        axes.set_title(f"#{at + 1}{star}{measured}", fontsize=5, pad=1.5)


def _squares(ranked: RankedSlide, tiles: Any, colour: str, width: float) -> Any:
    from matplotlib.collections import PolyCollection

    ring = np.array([[0, 0], [1, 0], [1, 1], [0, 1]]) * ranked.side
    outlines = ranked.corners[tiles][:, None, :] + ring
    return PolyCollection(
        list(outlines), facecolors="none", edgecolors=colour, linewidths=width, joinstyle="miter"
    )


def _scale_bar(axes: Axes, box: Box, mpp: float) -> None:
    """A bar of a round length at the bottom left, at most a quarter of the width."""
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


def nice_length(widest: float) -> float:
    """The largest of 1, 2 and 5 times a power of ten that is not above ``widest``.

    >>> nice_length(730.0), nice_length(1400.0), nice_length(4.9)
    (500.0, 1000.0, 2.0)
    """
    power = 10.0 ** math.floor(math.log10(widest))
    return max(step * power for step in (1, 2, 5) if step * power <= widest)
