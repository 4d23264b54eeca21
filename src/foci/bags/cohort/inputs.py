"""Slides and their feature files, with or without a label table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from foci.bags.cohort.matching import Matched, match
from foci.bags.importers import Imported, read_slides, slides_of_files


def find_slides(
    files: Mapping[str, Path],
    labels: str | Path | None = None,
    *,
    splits: str | Path | None = None,
    slide_table: str | Path | None = None,
    label_column: str | None = None,
    fold: int | None = None,
) -> tuple[Imported, Matched]:
    """Read the label table and match its rows to files; without one every file is a slide.

    Raises:
        CohortError: If the table is wrong, an option does not fit it, or a match is ambiguous.
    """
    if labels is None:
        imported = slides_of_files(
            files, splits=splits, slide_table=slide_table, label_column=label_column, fold=fold
        )
        return imported, Matched(imported.slides, (), ())
    imported = read_slides(
        labels, splits=splits, slide_table=slide_table, label_column=label_column, fold=fold
    )
    return imported, match(imported.slides, files)
