"""Figure of one slide for print: rankings side by side on the tissue, and their first tiles."""

from __future__ import annotations

import math
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foci.errors import FociError
from foci.exports.colours import colour_of
from foci.exports.panels import WIDTH, draw_crops, draw_overview
from foci.exports.ranked import RankedSlide
from foci.exports.tissue import Tissue

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 300
_INCHES_OF_TEXT = 0.75
_STYLE = {
    "font.size": 7,
    "font.family": "sans-serif",
    "svg.fonttype": "none",
    "svg.hashsalt": "foci",
    "pdf.fonttype": 42,
}


def write_figure(ranked: RankedSlide, tissue: Tissue, path: Path, kind: str) -> None:
    """Draw a slide and write it as ``png``, ``pdf`` or ``svg``; equal input gives equal bytes.

    Args:
        ranked: The slide with its rankings.
        tissue: Its pictures.
        path: File to write.
        kind: Format.
    """
    matplotlib = _matplotlib()
    undated: dict[str, Any] = {
        "png": {"Software": None},
        "pdf": {"CreationDate": None, "ModDate": None},
        "svg": {"Date": None},
    }
    with matplotlib.rc_context(_STYLE):
        figure = draw(ranked, tissue)
        figure.savefig(path, format=kind, dpi=DPI, metadata=undated[kind])


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
        colour = colour_of(at)
        draw_overview(figure.add_subplot(grid[0, at]), ranked, column, tissue, colour)
        if crops:
            draw_crops(figure, grid[1, at], ranked, column, tissue.crops[column.name], colour)
    figure.suptitle(_title(ranked), fontsize=8)
    figure.supxlabel(textwrap.fill(_caption(ranked, tissue), 140), fontsize=6)
    return figure


def _title(ranked: RankedSlide) -> str:
    label = "" if ranked.slide.label is None else f", label {ranked.slide.label}"
    said = f"predicted {ranked.predicted} with p = {ranked.p:.3f}"
    return f"{ranked.slide.slide_id}: {said} from {len(ranked.tiles)} tiles{label}"


def _caption(ranked: RankedSlide, tissue: Tissue) -> str:
    parts = ["Outlined: the first K tiles of each ranking, 1 to 3 numbered."]
    if tissue.crops and any(map(_any_measured, ranked.columns)):
        parts.append("Δp: drop of p when the tiles up to this one are removed.")
    if ranked.witness is not None:
        parts.append("White dots: annotated tiles; * a picture of one.")
    if tissue.mpp is None:
        parts.append("No scale bar: the resolution is unknown.")
    parts.append("Model-sufficient, not diagnostic.")
    return " ".join(parts)


def _any_measured(column: Any) -> bool:
    return any(not math.isnan(value) for value in column.delta_p)


def _matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError as error:
        fix = "pip install 'foci-mil[plots]'"
        raise FociError("matplotlib", f"cannot be loaded ({error})", fix) from error
    return matplotlib
