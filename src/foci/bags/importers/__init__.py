"""Read the label tables of the common tools, recognised by their header."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from foci.bags.bag import Slide, SlideRows
from foci.bags.importers import pathobench, stamp, tidy, torchmil
from foci.bags.importers.importer import (
    SPLIT_NAMES,
    Importer,
    ImportOptions,
    apply_splits,
    choose_splits,
    derived_cases_note,
)
from foci.bags.matching import case_of
from foci.bags.tables import Table, nearest, read_table
from foci.errors import CohortError
from foci.registry import Registry

__all__ = ["IMPORTERS", "ImportOptions", "Importer", "detect", "read_slides"]

IMPORTERS: Registry[Importer] = Registry("cohort table format")
"""All formats, in the order in which they are tried: the most specific first."""

IMPORTERS.add("pathobench", pathobench.IMPORTER)
IMPORTERS.add("torchmil", torchmil.IMPORTER)
IMPORTERS.add("stamp", stamp.IMPORTER)
IMPORTERS.add("tidy", tidy.IMPORTER)

_KEYS = {"slide_id": 0.8, "bag_name": 0.8, "PATIENT": 1.0}
"""Key columns of the formats, and how similar a misspelt column must be. A ``patient_id`` is no
``PATIENT``: it does not make a table STAMP's."""


def read_slides(
    labels: str | Path | Mapping[str, Path],
    *,
    splits: str | Path | None = None,
    slide_table: str | Path | None = None,
    label_column: str | None = None,
    fold: int | None = None,
) -> SlideRows:
    """Read a label table of any of the common tools, or take every feature file as a slide.

    Args:
        labels: The label table (``.csv``, ``.tsv``, ``.txt`` or ``.xlsx``); or feature files by
            slide name, which become slides without labels, with the patients of TCGA barcodes
            where there are any.
        splits: A split table to apply: CLAM's ``splits_k.csv``, a folder of these, or
            ``slide_id, split``.
        slide_table: STAMP's slide table.
        label_column: The column that holds the label, where the format leaves it open.
        fold: Which fold of a folder of splits, or of a Patho-Bench table; the first by default.

    Raises:
        CohortError: With the file and line, what is wrong, and what to do; also if an option means
            nothing for this table, or needs one.
    """
    split_table, fold, fold_notes = choose_splits(splits, fold)
    options = ImportOptions(
        slide_table=None if slide_table is None else Path(slide_table),
        label_column=label_column,
        fold=fold,
    )
    if isinstance(labels, Mapping):
        _check_options(options, (), "needs --labels", "give the label table, or leave it out")
        slides = tuple(Slide(name, case_of(name), feature_path=labels[name]) for name in labels)
        note = derived_cases_note(list(labels), "there is no label table that names patients")
        rows, among = SlideRows(slides, (note,)), "the feature folder"
    else:
        table = read_table(labels)
        name = detect(table)
        what = f"means nothing for {table.path}, a table of the format {name!r}"
        _check_options(options, IMPORTERS[name].options, what, "leave it out")
        rows, among = IMPORTERS[name].read(table, options), "the label table"
    if split_table is None:
        return rows
    assigned = apply_splits(rows.slides, read_table(split_table), among)
    return SlideRows(assigned.slides, rows.notes + fold_notes + assigned.notes)


def _check_options(options: ImportOptions, understood: Sequence[str], what: str, fix: str) -> None:
    for option, value in vars(options).items():
        if value is not None and option not in understood:
            raise CohortError(f"--{option.replace('_', '-')} {value}", what, fix)


def detect(table: Table) -> str:
    """Detect the format of a label table by its columns."""
    for name in IMPORTERS:
        if IMPORTERS[name].matches(table.columns):
            return name
    found = ", ".join(table.columns)
    if any(column.lower() in SPLIT_NAMES for column in table.columns):
        fix = "give the label table as --labels, and this one as --splits"
        raise CohortError(table.path, f"is a split table, not labels (columns: {found})", fix)
    if {"PATIENT", "FILENAME"} <= set(table.columns):
        fix = "give the clinical table as --labels, and this one as --slide-table"
        raise CohortError(table.path, f"is a slide table, not labels (columns: {found})", fix)
    for key, likeness in _KEYS.items():
        if near := nearest(key, table.columns, likeness):
            fix = f"did you mean {near!r}? rename it to {key!r}"
            raise CohortError(table.path, f"has no column {key!r} (columns: {found})", fix)
    expected = "; ".join(IMPORTERS[name].description for name in IMPORTERS)
    raise CohortError(
        table.path, f"is of no known format (columns: {found})", f"expected is one of: {expected}"
    )
