"""All figures of a study, made from what its tables are made from."""

from __future__ import annotations

from pathlib import Path

from foci.studies.figures.auc_vs_shi import auc_vs_shi
from foci.studies.figures.curves import srp_curve, srp_extended
from foci.studies.figures.deletion import deletion_curves
from foci.studies.figures.drawing import StudyFigure, write_figure
from foci.studies.figures.overlays import explainability
from foci.studies.figures.tiles_needed import tiles_needed
from foci.studies.folder import StudyFolder
from foci.studies.readings.numbers import StudyNumbers

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
