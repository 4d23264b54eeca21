"""Figures of a study: SVG, PDF and the data as CSV; equal results give equal bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from foci.audits import StoredAudit
from foci.audits.settings import EVIDENCE, NATIVE, RANDOM, SELECTOR
from foci.errors import FociError
from foci.files.atomic import whole_file, write_whole
from foci.metrics.deletion import PAPER_COUNTS
from foci.metrics.inputs import Floats, Integers
from foci.studies.paper_tables import shi_of
from foci.studies.plan import MAIN, StudyFolder
from foci.studies.read import (
    Measure,
    Place,
    StudyNumbers,
    Value,
    audit_folders,
)
from foci.studies.study import Overlays
from foci.studies.table import WITH, primary, shown
from foci.words import colour_of, csv_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOLDER = "figures"
WIDTH = 7.2
"""Inches: a printed page, both columns."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#4d4d4d")
"""Of backbones, in their order; distinct with every kind of colour vision."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

STYLES = {NATIVE: "-", SELECTOR: "--", RANDOM: ":"}
COLOUR_OF = {ranking: colour_of(ranking) for ranking in STYLES}
NAMES = {NATIVE: "own ranking", SELECTOR: "selector", RANDOM: "random order"}
RANKED = {name: (STYLES[name], COLOUR_OF[name], words) for name, words in NAMES.items()}
"""Lines by ranking: style, colour, name."""
MAP, BEST = "map", "best order"
CARRIED = {
    MAP: ("-", colour_of(NATIVE), "the model's map"),
    BEST: ("-", colour_of(EVIDENCE), "best order found"),
    RANDOM: (":", colour_of(RANDOM), "random tiles"),
}
"""Lines of the chart of the answers: style, colour, name."""
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
    """A figure: what it shows in words, its data, one row per point, and how to draw it.

    The label is the paper's, without ``fig:``; also the name of its files.
    """

    label: str
    caption: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]]
    draw: Callable[[], Figure]

    def to_csv(self) -> str:
        """The data behind the figure."""
        return csv_text([self.columns, *self.rows])


def write(folder: StudyFolder, numbers: StudyNumbers) -> tuple[StudyFigure, ...]:
    """Draw all figures into ``figures/`` as SVG and PDF, each with its data as CSV."""
    made = figures(folder, numbers)
    out = folder.path / FOLDER
    out.mkdir(parents=True, exist_ok=True)
    undated: dict[str, dict[str, Any]] = {
        "svg": {"Date": None},
        "pdf": {"CreationDate": None, "ModDate": None},
    }
    for figure in made:
        with _matplotlib().rc_context(_STYLE):
            drawn = figure.draw()
            for kind, metadata in undated.items():
                with whole_file(out / f"{figure.label}.{kind}", durable=False) as path:
                    drawn.savefig(path, format=kind, metadata=metadata)
        write_whole(out / f"{figure.label}.csv", figure.to_csv(), durable=False)
    return made


def figures(folder: StudyFolder, numbers: StudyNumbers) -> tuple[StudyFigure, ...]:
    """Every figure that has something to show."""
    settings = folder.study.settings(folder.study.seeds[0])
    made = (
        carried_curves(folder, numbers),
        auc_vs_shi(numbers),
        srp_curve(numbers, settings.kappa),
        srp_extended(numbers, settings.kappa),
        deletion_curves(numbers),
        explainability(folder),
    )
    return tuple(figure for figure in made if figure is not None and figure.rows)


def _matplotlib() -> Any:
    """The library that draws, or one line on how to get it."""
    try:
        import matplotlib
    except ImportError as error:
        fix = "pip install 'foci-mil[plots]'"
        raise FociError("matplotlib", f"cannot be loaded ({error})", fix) from error
    return matplotlib


def _panels(rows: int, columns: int, height: float, **how: Any) -> tuple[Figure, Any]:
    """A figure of panels ``[rows, columns]`` of a height in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height * rows + 0.55), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **how)


def _grid(
    numbers: StudyNumbers,
    draw: Callable[[Any, Place], None],
    labels: tuple[str, str],
    height: float = 1.0,
    lines: Mapping[str, tuple[str, str, str]] = RANKED,
    **look: Any,
) -> Figure:
    """Backbones x cohorts, each panel drawn by ``draw``, with a legend of the lines."""
    from matplotlib.lines import Line2D

    names, cohorts = list(numbers.backbones), numbers.cohorts
    figure, panels = _panels(len(names), len(cohorts), height, sharex=True, sharey=True)
    for (row, name), (column, cohort) in product(enumerate(names), enumerate(cohorts)):
        axes = panels[row][column]
        draw(axes, Place(cohort, name))
        if row == 0:
            axes.set_title(shown(cohort))
        if column == 0:
            axes.set_ylabel(shown(name))
        if row == len(names) - 1:
            axes.set_xlabel(labels[0])
    figure.supylabel(labels[1], fontsize=7)
    handles = [
        Line2D([], [], ls=style, color=colour, label=name, **look)
        for style, colour, name in lines.values()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=8)
    return figure


def _counts_axis(axes: Any, k_max: int, ticks: Sequence[int] = ()) -> None:
    """A logarithmic axis of tile counts, with ticks at 1, 4, 16, ... if no others are given."""
    ticks = ticks or [4**power for power in range(k_max.bit_length()) if 4**power <= k_max]
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()


def drawn_counts(k_max: int) -> Integers:
    """Every count up to 32, then fewer and fewer: what a logarithmic axis can show.

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


# The figures


def auc_vs_shi(numbers: StudyNumbers) -> StudyFigure:
    """fig:auc_vs_shi, a point per backbone and cohort: does AUC say how much a selector saves?"""
    points: list[tuple[str, str, float, float, int]] = []
    for backbone, cohort in product(numbers.backbones, numbers.cohorts):
        place = Place(cohort, backbone)
        auc, saving = numbers.value(place, Measure("auc")).mean, shi_of(numbers, place)
        if auc is not None and saving.mean is not None:
            points.append((backbone, cohort, auc, saving.mean, saving.n))

    def draw() -> Figure:
        from matplotlib.figure import Figure
        from matplotlib.lines import Line2D

        figure = Figure(figsize=(4.6, 3.2), layout="constrained")
        axes = figure.subplots()
        colours = dict(zip(numbers.backbones, COLOURS * 3, strict=False))
        markers = dict(zip(numbers.cohorts, MARKERS * 3, strict=False))
        axes.axhline(0, color="#666666", lw=0.7)
        look: dict[str, Any] = {"ms": 5.5, "mec": "white", "mew": 0.5}
        for backbone, cohort, auc, saving, _ in points:
            axes.plot(auc, saving, markers[cohort], color=colours[backbone], **look)
        axes.set_xlabel("AUC, full bag")
        axes.set_ylabel("SHI (share of tiles saved)")
        handles = [
            Line2D([], [], marker="o", ls="", color=colour, label=shown(name), ms=4.5)
            for name, colour in colours.items()
        ]
        open_marker: dict[str, Any] = {"ls": "", "color": "#333333", "mfc": "none", "ms": 4.5}
        handles += [
            Line2D([], [], marker=marker, label=shown(name), **open_marker)
            for name, marker in markers.items()
        ]
        figure.legend(handles=handles, loc="outside right upper")
        return figure

    return StudyFigure(
        label="auc_vs_shi",
        caption="Slide-level AUC of the full bag (test slides) against SHI, means over seeds. "
        "Colour: backbone; marker: cohort. Above 0 the selector needs fewer tiles than the "
        "backbone's own ranking.",
        columns=("backbone", "cohort", "auc", "shi", "seeds"),
        rows=points,
        draw=draw,
    )


Lines = dict[tuple[Place, str], tuple[Integers, Floats, Floats, int]]
"""Mean curves by place and ranking: counts, mean and std over seeds, number of seeds."""


def _mean_curves(numbers: StudyNumbers, wanted: Iterable[tuple[Place, str]]) -> Lines:
    """Mean and population standard deviation of the seeds' mean curves, of those that exist."""
    found: Lines = {}
    for place, ranking in wanted:
        read = numbers.read(place).values()
        curves = [one.curves[ranking] for one in read if ranking in one.curves]
        if curves:
            ks = drawn_counts(min(map(len, curves)))
            table = np.stack([curve[ks - 1] for curve in curves])
            found[place, ranking] = (ks, table.mean(axis=0), table.std(axis=0), len(curves))
    return found


def _curve_figure(
    label: str, caption: str, found: Lines, draw: Callable[[], Figure]
) -> StudyFigure:
    rows = [
        (place.cohort, place.backbone, ranking, int(k), float(mean), float(std), seeds)
        for (place, ranking), (ks, means, stds, seeds) in found.items()
        for k, mean, std in zip(ks, means, stds, strict=True)
    ]
    columns = ("cohort", "backbone", "ranking", "k", "mean", "std", "seeds")
    return StudyFigure(label, caption, columns, rows, draw)


def srp_curve(numbers: StudyNumbers, kappa: float) -> StudyFigure:
    """fig:srp_curve, every backbone's own ranking, and the primary backbone's selector."""
    chosen = primary(numbers.backbones)
    lines = [(name, NATIVE) for name in numbers.backbones] + [(chosen, SELECTOR), (chosen, RANDOM)]
    pairs = product(numbers.cohorts, lines)
    found = _mean_curves(numbers, ((Place(c, name), ranking) for c, (name, ranking) in pairs))
    ends = {NATIVE: "", SELECTOR: f" {WITH}", RANDOM: " random order"}

    def draw() -> Figure:
        from matplotlib.lines import Line2D

        figure, panels = _panels(1, len(numbers.cohorts), 2.3, sharey=True)
        colours = dict(zip(numbers.backbones, COLOURS * 3, strict=False))
        handles: dict[str, Any] = {}
        for axes, cohort in zip(panels[0], numbers.cohorts, strict=True):
            for name, ranking in lines:
                if (Place(cohort, name), ranking) not in found:
                    continue
                ks, mean, _, _ = found[Place(cohort, name), ranking]
                colour = COLOUR_OF[RANDOM] if ranking == RANDOM else colours[name]
                style, label = STYLES[ranking], shown(name) + ends[ranking]
                axes.plot(ks, mean, style, color=colour, lw=1.8 if ranking != NATIVE else 1)
                handles.setdefault(label, Line2D([], [], ls=style, color=colour, label=label))
                _counts_axis(axes, int(ks[-1]))
            axes.axhline(kappa, color="#333333", ls=(0, (1, 2)), lw=0.7)
            axes.set_title(shown(cohort))
            axes.set_xlabel("tiles revealed, K")
        panels[0][0].set_ylabel("mean probability of the label")
        figure.legend(handles=[*handles.values()], loc="outside lower center", ncols=5)
        return figure

    caption = (
        "Mean probability of the label when the first K tiles are revealed, averaged over test "
        f"slides and seeds. Solid: own ranking of every backbone; dashed: {shown(chosen)} with its "
        f"selector; dotted grey: random orders; horizontal: kappa = {kappa:g}."
    )
    return _curve_figure("srp_curve", caption, found, draw)


def srp_extended(numbers: StudyNumbers, kappa: float) -> StudyFigure:
    """fig:srp_extended, backbones x cohorts, with a band of one std over seeds."""
    every = product(numbers.cohorts, numbers.backbones, STYLES)
    found = _mean_curves(numbers, ((Place(c, name), ranking) for c, name, ranking in every))

    def panel(axes: Any, place: Place) -> None:
        for ranking, style in STYLES.items():
            if (place, ranking) in found:
                ks, mean, std, _ = found[place, ranking]
                band = {"color": COLOUR_OF[ranking], "alpha": 0.18, "lw": 0}
                axes.fill_between(ks, mean - std, mean + std, **band)
                axes.plot(ks, mean, style, color=COLOUR_OF[ranking])
                _counts_axis(axes, int(ks[-1]))
        if not any((place, ranking) in found for ranking in STYLES):
            axes.text(0.5, 0.5, "not run", ha="center", transform=axes.transAxes)
        axes.axhline(kappa, color="#333333", ls=(0, (1, 2)), lw=0.7)

    labels = ("tiles revealed, K", "mean probability of the label")
    caption = (
        "Reveal curves of every backbone and cohort: mean probability of the label over test "
        "slides; solid: own ranking, dashed: selector, dotted: random orders; bands: one standard "
        f"deviation over seeds; horizontal: kappa = {kappa:g}."
    )
    return _curve_figure(
        "srp_extended", caption, found, lambda: _grid(numbers, panel, labels, height=1.05)
    )


def carried_curves(folder: StudyFolder, numbers: StudyNumbers) -> StudyFigure:
    """Share of sure slides whose decision the first K tiles carry: what the answers rest on."""
    found: Lines = {}
    for place, by_seed in audit_folders(folder).items():
        if place.variant != MAIN or place.n_cap is not None:
            continue
        charts = [StoredAudit.load(path).summary.carried for path in by_seed.values()]
        own = [one for one in charts if one is not None and one.relative is None]
        if not own:
            continue
        ks = drawn_counts(min(one.ks[-1] for one in own))
        shares = {
            MAP: [one.lines[one.map] for one in own],
            BEST: [one.lines[one.best or one.map] for one in own],
            RANDOM: [one.lines[RANDOM] for one in own],
        }
        for line, by_audit in shares.items():
            every = zip(by_audit, own, strict=True)
            table = np.array([[x.at(one.ks, k) for k in ks.tolist()] for x, one in every])
            found[place, line] = (ks, table.mean(axis=0), table.std(axis=0), len(own))

    def panel(axes: Any, place: Place) -> None:
        for line, (style, colour, _) in CARRIED.items():
            if (place, line) in found:
                ks, mean, std, _ = found[place, line]
                band = {"color": colour, "alpha": 0.18, "lw": 0, "step": "post"}
                axes.fill_between(ks, mean - std, mean + std, **band)
                axes.step(ks, mean, style, where="post", color=colour)
                _counts_axis(axes, int(ks[-1]))
        if (place, MAP) not in found:
            axes.text(0.5, 0.5, "not known", ha="center", transform=axes.transAxes)
        axes.set_ylim(0, 1.02)

    labels = ("first tiles taken, K", "share of sure slides whose decision they carry")
    return _curve_figure(
        "carried",
        "Share of slides whose decision the first K tiles carry: these tiles alone give it, and "
        "without them it changes. Of the slides that the model is sure of; blue: its map, "
        "orange: the best order found, dotted grey: random tiles; bands: one standard deviation "
        "over seeds.",
        found,
        lambda: _grid(numbers, panel, labels, lines=CARRIED),
    )


def deletion_curves(numbers: StudyNumbers) -> StudyFigure:
    """Mean drop at the paper's counts, backbones x cohorts, bars of one std over seeds."""
    found: dict[tuple[str, str, str, int], Value] = {}
    for at in product(numbers.cohorts, numbers.backbones, STYLES, PAPER_COUNTS):
        cohort, name, ranking, k = at
        value = numbers.value(Place(cohort, name), Measure("drop", ranking, k=k))
        if value.mean is not None:
            found[at] = value

    def panel(axes: Any, place: Place) -> None:
        axes.axhline(0, color="#666666", lw=0.6)
        for ranking, style in STYLES.items():
            at = (place.cohort, place.backbone, ranking)
            known = [k for k in PAPER_COUNTS if (*at, k) in found]
            means = [found[(*at, k)].mean for k in known]
            bars = [found[(*at, k)].std or 0.0 for k in known]
            look = {"ls": style, "color": COLOUR_OF[ranking], "elinewidth": 0.7}
            if known:
                axes.errorbar(known, means, bars, marker="o", ms=2.5, **look)
        _counts_axis(axes, PAPER_COUNTS[-1], PAPER_COUNTS)

    labels = ("tiles removed, K", "mean loss of the label's probability")
    return StudyFigure(
        label="deletion",
        caption="Mean loss of the label's probability when the first K tiles are removed, over "
        "the test slides that have more than K tiles; bars: one standard deviation over seeds.",
        columns=("cohort", "backbone", "ranking", "k", "drop", "std", "seeds"),
        rows=[(*at, value.mean, value.std, value.n) for at, value in found.items()],
        draw=lambda: _grid(numbers, panel, labels, marker="o", ms=2.5),
    )


# fig:explainability: the first tiles of several rankings, side by side on the same slides


class Overlay(NamedTuple):
    """One ranking of one slide: corners ``[N, 2]`` and side of its tiles, its first tiles in order.

    ``msk`` is None where the label never reaches kappa.
    """

    corners: Integers
    side: float
    first: Integers
    msk: float | None


def explainability(folder: StudyFolder) -> StudyFigure | None:
    """Rows are slides, columns rankings; None where the study asks for no overlays."""
    wanted = folder.study.overlays
    if wanted is None:
        return None
    found: dict[tuple[str, str], Overlay] = {}
    for name in wanted.rankings:
        found |= _overlays(folder, wanted, name)
    rows = [
        (*slide_and_ranking, rank, int(x), int(y))
        for slide_and_ranking, one in found.items()
        for rank, (x, y) in enumerate(one.corners[one.first], 1)
    ]
    return StudyFigure(
        label="explainability",
        caption=f"The first {wanted.top} tiles of each ranking, outlined among all tiles of the "
        "slide at their coordinates; the first three are numbered. What a model finds sufficient "
        "is not what a diagnosis rests on.",
        columns=("slide", "ranking", "rank", "x", "y"),
        rows=rows,
        draw=lambda: _draw_overlays(wanted, found),
    )


def _overlays(
    folder: StudyFolder, wanted: Overlays, name: str
) -> Iterator[tuple[tuple[str, str], Overlay]]:
    """Slides with coordinates under one ranking, ``backbone/ranking``."""
    backbone, _, ranking = name.partition("/")
    folders = audit_folders(folder).get(Place(wanted.cohort, backbone), {})
    if not folders:
        return
    audit = StoredAudit.load(next(iter(folders.values())))
    if ranking not in audit.curves.rankings:
        known = ", ".join(audit.curves.rankings)
        raise FociError(name, "is not among the audited rankings", f"known: {known}")
    sizes = {slide.slide_id: slide.patch_size for slide in audit.slides}
    for tiles in audit.tiles():
        slide, corners = tiles.slide_id, tiles.coords
        if slide not in wanted.slides or corners is None:
            continue
        column = next(c for c in tiles.scores if c == ranking or c.startswith(f"{ranking}-"))
        steps = np.diff(np.unique(corners[:, 0]))  # where the files give no size
        side = float(sizes[slide] or (steps.min() if len(steps) else 1.0))
        first, msk = tiles.order(column)[: wanted.top], _msk_of(audit, slide, ranking)
        yield (slide, name), Overlay(corners, side, first, msk)


def _msk_of(audit: StoredAudit, slide: str, ranking: str) -> float | None:
    """Tiles until the label of a slide reaches kappa; None if it never does or has no label."""
    measured, row = audit.measured(), audit.curves.slide_ids.index(slide)
    if measured.slides.labels[row] < 0:
        return None
    at = np.searchsorted(measured.rows("label"), row)
    count = float(measured.of(ranking, "label").msk[0, at])
    return None if np.isnan(count) else count


def _draw_overlays(wanted: Overlays, found: Mapping[tuple[str, str], Overlay]) -> Figure:
    from matplotlib.collections import PolyCollection

    shown_slides = {slide for slide, _ in found}
    slides = [slide for slide in wanted.slides if slide in shown_slides]
    figure, panels = _panels(len(slides), len(wanted.rankings), WIDTH / len(wanted.rankings))
    for (row, slide), (column, name) in product(enumerate(slides), enumerate(wanted.rankings)):
        axes, one = panels[row][column], found.get((slide, name))
        axes.set_axis_off()
        if one is None:
            continue
        corners, side = one.corners, one.side
        colour = colour_of(name)
        squares = corners[:, None, :] + np.array([[0, 0], [1, 0], [1, 1], [0, 1]]) * side
        pale = {"facecolors": "#efece6", "edgecolors": "#d0ccc4", "linewidths": 0.3}
        bright = {"facecolors": colour, "edgecolors": colour, "linewidths": 0.6, "alpha": 0.55}
        looks: list[tuple[Any, dict[str, Any]]] = [(squares, pale), (squares[one.first], bright)]
        for outlines, look in looks:
            axes.add_collection(PolyCollection(list(outlines), **look))
        for rank, at in enumerate(one.first[:3], 1):
            x, y = corners[at] + side / 2
            axes.text(x, y, str(rank), ha="center", va="center", fontsize=6, fontweight="bold")
        low, high = corners.min(axis=0), corners.max(axis=0) + side
        axes.set_xlim(low[0] - side, high[0] + side)
        axes.set_ylim(high[1] + side, low[1] - side)
        axes.set_aspect("equal")
        backbone, _, ranking = name.partition("/")
        reached = "κ never reached" if one.msk is None else f"MSK {one.msk:g}"
        axes.set_title(f"{slide}\n{shown(backbone)}, {ranking}: {reached}", fontsize=6.5)
    return figure
