"""FOCI's own table, and CLAM's dataset CSV, which it extends: one row per slide."""

from __future__ import annotations

from foci.bags.bag import Slide, SlideRows
from foci.bags.importers.importer import Importer, ImportOptions, derived_cases_note, split_column
from foci.bags.matching import case_of
from foci.bags.tables import Table
from foci.words import some


def _read(table: Table, options: ImportOptions) -> SlideRows:
    """Columns beyond ``slide_id`` and the label are optional; relative paths start at the table.

    A slide without a label can be audited, so an empty label is none.
    """
    folder, label = table.path.parent, options.label_column or "label"
    table.require("slide_id")
    table.require(label, fix="name the label column with --label-column")
    slide_ids = table.unique(table.filled("slide_id"))
    labels = [row[label] or None for row in table.rows]
    notes: list[str] = []
    if "case_id" in table.columns:
        cases = table.filled("case_id")
    else:
        cases = [case_of(slide_id) for slide_id in slide_ids]
        notes.append(derived_cases_note(slide_ids))
    without = [name for name, given in zip(slide_ids, labels, strict=True) if given is None]
    if without:
        notes.append(f"no {label} for {some(without)}")
    named = split_column(table, "split") if "split" in table.columns else [None] * len(slide_ids)
    slides = tuple(
        Slide(
            slide_id=slide_ids[index],
            case_id=cases[index],
            label=labels[index],
            split=named[index],
            site=row.get("site") or None,
            slide_path=folder / text if (text := row.get("slide_path")) else None,
            feature_path=folder / text if (text := row.get("feature_path")) else None,
        )
        for index, row in enumerate(table.rows)
    )
    return SlideRows(slides, tuple(notes))


IMPORTER = Importer(
    "FOCI or CLAM (slide_id, case_id, label; optional split, site, slide_path, feature_path)",
    lambda columns: "slide_id" in columns,
    _read,
    options=("label_column",),
)
