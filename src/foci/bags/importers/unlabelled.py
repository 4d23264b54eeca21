"""A folder of feature files without a label table: every file is a slide."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from foci.bags.cohort.slide import Slide
from foci.bags.cohort.tcga import case_of
from foci.bags.importers.clam_splits import apply_splits
from foci.bags.importers.folds import choose_splits
from foci.bags.importers.importer import Imported
from foci.bags.importers.rows import derived_cases_note, spelled
from foci.bags.tables import read_table
from foci.errors import CohortError


def slides_of_files(
    files: Mapping[str, Path],
    *,
    splits: str | Path | None = None,
    slide_table: str | Path | None = None,
    label_column: str | None = None,
    fold: int | None = None,
) -> Imported:
    """Slides without labels; the patients are those of TCGA barcodes, where there are any.

    Args:
        files: Slide name to feature file.
        splits: A split table to apply, or a folder of folds.
        slide_table: Refused, as it says something of a label table only.
        label_column: Refused likewise.
        fold: Which fold of a folder of splits; refused without one.

    Raises:
        CohortError: If an option needs a label table, or the split table does not fit.
    """
    chosen = choose_splits(splits, fold)
    options = {"slide_table": slide_table, "label_column": label_column, "fold": chosen.fold}
    for option, value in options.items():
        if value is not None:
            fix = "give the label table, or leave it out"
            raise CohortError(f"{spelled(option)} {value}", "needs --labels", fix)
    slides = tuple(Slide(name, case_of(name), feature_path=path) for name, path in files.items())
    notes = (derived_cases_note(list(files), "there is no label table that names patients"),)
    if chosen.path is None:
        return Imported(slides, notes)
    placed = apply_splits(slides, read_table(chosen.path), "the feature folder")
    return Imported(placed.slides, notes + chosen.notes + placed.notes)
