"""What a person gives, feature files and perhaps a label table, as slides with their files."""

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
    """The rows of the label table, or without one a slide per file; and which file is whose.

    Raises:
        CohortError: If the table is wrong, an option does not fit it, or a file's owner is unclear.
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
