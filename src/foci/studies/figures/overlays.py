"""fig:explainability: the first tiles of several rankings, side by side on the same slides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from foci.audits import StoredAudit
from foci.audits.folder.tile_scores import RankedTiles
from foci.errors import FociError
from foci.studies.figures.drawing import StudyFigure, grid_of
from foci.studies.folder import StudyFolder
from foci.studies.plan.blocks import Overlays
from foci.studies.readings.measures import Place
from foci.studies.readings.study import audit_folders
from foci.studies.tables.naming import shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00")
NUMBERED = 3


@dataclass(frozen=True, eq=False)
class Panel:
    """One ranking of one slide.

    Attributes:
        slide: The slide.
        ranking: ``backbone/ranking``.
        corners: ``[N, 2]`` of all its tiles; None where there are no coordinates.
        side: Of a tile.
        first: Positions of its first tiles, best first.
        msk: Tiles until the label reaches kappa; None if it never does.
    """

    slide: str
    ranking: str
    corners: NDArray[np.int64] | None
    side: float
    first: NDArray[np.int64]
    msk: float | None


def explainability(folder: StudyFolder) -> StudyFigure | None:
    """Rows are slides, columns rankings; None where the study asks for no overlays."""
    wanted = folder.study.overlays
    if wanted is None:
        return None
    panels = [panel for name in wanted.rankings for panel in _panels(folder, wanted, name)]
    placed = [panel for panel in panels if panel.corners is not None]
    if not placed:
        return None
    return StudyFigure(
        label="explainability",
        caption=f"The first {wanted.top} tiles of each ranking, outlined among all tiles of the "
        "slide at their coordinates; the first three are numbered. What a model finds sufficient "
        "is not what a diagnosis rests on.",
        columns=("slide", "ranking", "rank", "x", "y"),
        rows=[row for panel in placed for row in _rows(panel)],
        draw=lambda: _draw(wanted, placed),
    )


def _panels(folder: StudyFolder, wanted: Overlays, name: str) -> list[Panel]:
    backbone, _, ranking = name.partition("/")
    found = audit_folders(folder).get(Place(wanted.cohort, backbone), {})
    if not found:
        return []
    audit = StoredAudit.load(next(iter(found.values())))
    if ranking not in audit.curves.rankings:
        known = ", ".join(audit.curves.rankings)
        raise FociError(name, "is not among the audited rankings", f"they are {known}")
    slides = {slide.slide_id: slide for slide in audit.slides}
    chosen: list[Panel] = []
    for tiles in audit.tiles():
        if tiles.slide_id in wanted.slides:
            side = slides[tiles.slide_id].patch_size
            chosen.append(_panel(audit, tiles, name, ranking, side, wanted.top))
    return chosen


def _panel(
    audit: StoredAudit, tiles: RankedTiles, name: str, ranking: str, side: int | None, top: int
) -> Panel:
    column = next(c for c in tiles.scores if c == ranking or c.startswith(f"{ranking}-"))
    row = audit.curves.slide_ids.index(tiles.slide_id)
    views = audit.measured()
    label = views.views.get("label")
    count = None
    if label is not None and row in label.rows:
        at = int(np.flatnonzero(label.rows == row)[0])
        found = float(views.metrics["label"][ranking].msk[0, at])
        count = None if np.isnan(found) else found
    return Panel(
        slide=tiles.slide_id,
        ranking=name,
        corners=tiles.coords,
        side=float(side) if side else _step(tiles.coords),
        first=tiles.order(column)[:top],
        msk=count,
    )


def _step(corners: NDArray[np.int64] | None) -> float:
    """Smallest distance between columns of tiles, where the files give no size."""
    if corners is None or len(corners) < 2:
        return 1.0
    steps = np.diff(np.unique(corners[:, 0]))
    return float(steps.min()) if len(steps) else 1.0


def _rows(panel: Panel) -> list[tuple[Any, ...]]:
    assert panel.corners is not None  # noqa: S101 - panels without coordinates are left out
    first = panel.corners[panel.first]
    return [(panel.slide, panel.ranking, i, int(x), int(y)) for i, (x, y) in enumerate(first, 1)]


def _draw(wanted: Overlays, panels: list[Panel]) -> Figure:
    slides = [name for name in wanted.slides if any(panel.slide == name for panel in panels)]
    size = len(slides), len(wanted.rankings)
    figure, axes = grid_of(*size, 7.2 / size[1])
    for row, slide in enumerate(slides):
        for column, ranking in enumerate(wanted.rankings):
            one = [p for p in panels if (p.slide, p.ranking) == (slide, ranking)]
            axes[row][column].set_axis_off()
            if one:
                _draw_panel(axes[row][column], one[0], COLOURS[column % len(COLOURS)])
    return figure


def _draw_panel(axes: Any, panel: Panel, colour: str) -> None:
    from matplotlib.collections import PolyCollection

    corners, side = panel.corners, panel.side
    if corners is None:
        return
    ring = np.array([[0, 0], [1, 0], [1, 1], [0, 1]]) * side
    every = list(corners[:, None, :] + ring)
    first = list(corners[panel.first][:, None, :] + ring)
    axes.add_collection(
        PolyCollection(every, facecolors="#efece6", edgecolors="#d0ccc4", linewidths=0.3)
    )
    axes.add_collection(
        PolyCollection(first, facecolors=colour, edgecolors=colour, alpha=0.55, linewidths=0.6)
    )
    for rank, at in enumerate(panel.first[:NUMBERED], 1):
        x, y = corners[at] + side / 2
        axes.text(x, y, str(rank), ha="center", va="center", fontsize=6, fontweight="bold")
    low, high = corners.min(axis=0), corners.max(axis=0) + side
    axes.set_xlim(low[0] - side, high[0] + side)
    axes.set_ylim(high[1] + side, low[1] - side)
    axes.set_aspect("equal")
    backbone, _, ranking = panel.ranking.partition("/")
    reached = "κ never reached" if panel.msk is None else f"MSK {panel.msk:g}"
    axes.set_title(f"{panel.slide}\n{shown(backbone)}, {ranking}: {reached}", fontsize=6.5)
