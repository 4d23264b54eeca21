"""Slides and their feature files, with or without a label table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from foci.bags.cohort.chosen_classes import choose_classes
from foci.bags.cohort.matching import Matched, match
from foci.bags.importers import Imported, read_slides, slides_of_files
from foci.errors import CohortError


def find_slides(
    files: Mapping[str, Path],
    labels: str | Path | None = None,
    *,
    splits: str | Path | None = None,
    slide_table: str | Path | None = None,
    label_column: str | None = None,
    fold: int | None = None,
    only_classes: Sequence[str] | None = None,
    exclude_class: Sequence[str] | None = None,
) -> tuple[Imported, Matched]:
    """Read the label table and match its rows to files; without one every file is a slide.

    Slides of classes that are not wanted are left out after the match, so that their feature files
    do not count as files without a row.

    Raises:
        CohortError: If the table is wrong, an option does not fit it, or a match is ambiguous.
    """
    if labels is None:
        for option, names in (("--only-classes", only_classes), ("--exclude-class", exclude_class)):
            if names:
                fix = "give the label table, or leave it out"
                raise CohortError(f"{option} {','.join(names)}", "needs --labels", fix)
        imported = slides_of_files(
            files, splits=splits, slide_table=slide_table, label_column=label_column, fold=fold
        )
        return imported, Matched(imported.slides, (), ())
    imported = read_slides(
        labels, splits=splits, slide_table=slide_table, label_column=label_column, fold=fold
    )
    matched = match(imported.slides, files)
    kept, notes = choose_classes(imported.slides, only_classes, exclude_class)
    wanted = {slide.slide_id for slide in kept}
    matched = replace(
        matched,
        slides=tuple(slide for slide in matched.slides if slide.slide_id in wanted),
        missing=tuple(slide for slide in matched.missing if slide.slide_id in wanted),
    )
    return Imported(kept, imported.notes + notes), matched
