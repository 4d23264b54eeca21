"""STAMP's pair of tables: labels by patient, and the feature files of each patient."""

from __future__ import annotations

from pathlib import PurePosixPath

from foci.bags.bag import Slide, SlideRows
from foci.bags.importers.importer import Importer, ImportOptions, choose_label
from foci.bags.layouts import suffixes
from foci.bags.tables import Table, read_table
from foci.errors import CohortError

_NAMED = 5


def _read(table: Table, options: ImportOptions) -> SlideRows:
    """Join both tables; a note counts and names what is left over on either side.

    Clinical tables serve many targets, so a patient without this label is nothing unusual: such
    patients are left out and noted too.
    """
    if options.slide_table is None:
        fix = "give the slide table (PATIENT, FILENAME) with --slide-table"
        raise CohortError(table.path, "names patients but no slides", fix)
    label = choose_label(table, {"PATIENT"}, options.label_column)
    patients = table.unique(table.filled("PATIENT"), "patient")
    labels = dict(zip(patients, (row[label] for row in table.rows), strict=True))
    files = read_table(options.slide_table)
    files.require("PATIENT", "FILENAME")
    slide_ids = files.unique([_slide_id(name) for name in files.filled("FILENAME")])
    owners = files.filled("PATIENT")

    pairs = list(zip(slide_ids, owners, strict=True))
    slides = tuple(Slide(s, case, labels[case]) for s, case in pairs if labels.get(case))
    if not slides:
        what = f"no patient with a {label!r} has a slide in {files.path}"
        raise CohortError(table.path, what, "check that both tables use the same patient names")
    seen = set(owners)
    notes = (
        _note("patients have no slide", [p for p in patients if labels[p] and p not in seen]),
        _note(
            "slides belong to patients who are not in the clinical table",
            [s for s, case in pairs if case not in labels],
        ),
        _note(f"patients have no {label!r}", [p for p in patients if not labels[p]]),
    )
    return SlideRows(slides, tuple(note for note in notes if note))


def _slide_id(filename: str) -> str:
    path = PurePosixPath(filename.replace("\\", "/"))
    return path.stem if path.suffix.lower() in suffixes() else path.name


def _note(what: str, names: list[str]) -> str:
    if not names:
        return ""
    shown = ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
    return f"{len(names)} {what} and are left out ({shown})"


IMPORTER = Importer(
    "STAMP (PATIENT and label columns, with a slide table PATIENT, FILENAME)",
    lambda columns: "PATIENT" in columns and "FILENAME" not in columns,
    _read,
    options=("slide_table", "label_column"),
)
