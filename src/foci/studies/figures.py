"""All figures of a study, made from what its tables are made from."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from foci.audits import StoredAudit
from foci.audits.stored import RankedTiles
from foci.errors import FociError
from foci.files.atomic import whole_file, write_whole
from foci.metrics.deletion import PAPER_COUNTS
from foci.metrics.inputs import Floats, Integers
from foci.studies.folder import StudyFolder
from foci.studies.paper_tables import shi_of
from foci.studies.read import (
    NATIVE,
    RANDOM,
    SELECTOR,
    Measure,
    Place,
    StudyNumbers,
    Value,
    audit_folders,
)
from foci.studies.study import Overlays
from foci.studies.table import WITH, primary, shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# How figures of a study look and are written: SVG, PDF and the data as CSV, equal bytes.


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


# fig:auc_vs_shi: does slide-level AUC tell how much a selector saves?


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
        draw=lambda: _draw_auc_vs_shi(numbers, points),
    )


def _draw_auc_vs_shi(numbers: StudyNumbers, points: list[Point]) -> Figure:
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


# fig:srp_curve, fig:srp_extended: mean probability of the label as tiles are revealed.


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


# Deletion curves: mean loss of the label's probability when the top K tiles are removed.


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
        draw=lambda: _draw_deletion(numbers, found),
    )


def _draw_deletion(numbers: StudyNumbers, found: Drops) -> Figure:
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


# fig:explainability: the first tiles of several rankings, side by side on the same slides.


OVERLAY_COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00")
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
        rows=[row for panel in placed for row in _overlay_rows(panel)],
        draw=lambda: _draw_overlays(wanted, placed),
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


def _overlay_rows(panel: Panel) -> list[tuple[Any, ...]]:
    assert panel.corners is not None  # noqa: S101 - panels without coordinates are left out
    first = panel.corners[panel.first]
    return [(panel.slide, panel.ranking, i, int(x), int(y)) for i, (x, y) in enumerate(first, 1)]


def _draw_overlays(wanted: Overlays, panels: list[Panel]) -> Figure:
    slides = [name for name in wanted.slides if any(panel.slide == name for panel in panels)]
    size = len(slides), len(wanted.rankings)
    figure, axes = grid_of(*size, 7.2 / size[1])
    for row, slide in enumerate(slides):
        for column, ranking in enumerate(wanted.rankings):
            one = [p for p in panels if (p.slide, p.ranking) == (slide, ranking)]
            axes[row][column].set_axis_off()
            if one:
                _draw_panel(
                    axes[row][column], one[0], OVERLAY_COLOURS[column % len(OVERLAY_COLOURS)]
                )
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


# Distribution of K: share of slides that have reached kappa after K tiles.


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
        draw=lambda: _draw_tiles_needed(numbers, found, k_max),
    )


def _reached(counts: Floats, k_max: int) -> Floats:
    """Share of the slides with a count of at most 1, 2, ..., K_max."""
    known = np.sort(counts[~np.isnan(counts)])
    shares: Floats = np.searchsorted(known, np.arange(1, k_max + 1), side="right") / len(counts)
    return shares


def _draw_tiles_needed(numbers: StudyNumbers, found: Shares, k_max: int) -> Figure:
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


FOLDER = "figures"


def figures(folder: StudyFolder, numbers: StudyNumbers) -> tuple[StudyFigure, ...]:
    """Every figure that has something to show."""
    settings = folder.study.settings(folder.study.seeds[0])
    made = (
        auc_vs_shi(numbers),
        srp_curve(numbers, settings.kappa),
        srp_extended(numbers, settings.kappa),
        tiles_needed(numbers, settings.kappa, settings.k_max),
        deletion_curves(numbers),
        explainability(folder),
    )
    return tuple(figure for figure in made if figure is not None)


def write(folder: StudyFolder, numbers: StudyNumbers) -> tuple[StudyFigure, ...]:
    """Draw all figures into ``figures/`` as SVG and PDF, each with its data as CSV."""
    made = figures(folder, numbers)
    out: Path = folder.path / FOLDER
    out.mkdir(parents=True, exist_ok=True)
    for figure in made:
        write_figure(figure, out)
    return made
