"""torchmil's ``splits.csv``, with one label file per bag beside it."""

from __future__ import annotations

from pathlib import Path

from foci.bags.bag import Slide, SlideRows
from foci.bags.importers.importer import Importer, ImportOptions, derived_cases_note, split_column
from foci.bags.layouts.arrays import load_npy
from foci.bags.matching import case_of
from foci.bags.tables import Table
from foci.errors import CohortError


def _read(table: Table, options: ImportOptions) -> SlideRows:
    """Labels from ``labels/<bag>.npy`` beside the table."""
    folder = table.path.parent
    names = table.unique(table.filled("bag_name"))
    slides = tuple(
        Slide(
            slide_id=name,
            case_id=case_of(name),
            label=_label(folder / "labels" / f"{name}.npy"),
            split=split,
        )
        for name, split in zip(names, split_column(table, "split"), strict=True)
    )
    return SlideRows(slides, (derived_cases_note(names),))


def _label(path: Path) -> str:
    """The class number in a file, as text."""
    if not path.is_file():
        raise CohortError(path, "does not exist", "keep the folder labels/ beside the split table")
    try:
        values = load_npy(path).ravel()
        whole = values.size == 1 and float(values[0]).is_integer()
    except (OSError, EOFError, TypeError, ValueError) as error:
        what = f"is not a readable NumPy file of numbers ({error})"
        raise CohortError(path, what, "write the label as one number, without pickle") from error
    if not whole:
        what = f"holds {values.size} values, not one class number"
        if values.size == 1:
            what = f"holds {values[0]}, which is no class number"
        raise CohortError(path, what, "write one whole number per bag")
    return str(int(values[0]))


IMPORTER = Importer(
    "torchmil (bag_name, split, with labels/<bag>.npy beside the table)",
    lambda columns: {"bag_name", "split"} <= set(columns),
    _read,
)
