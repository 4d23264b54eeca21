"""torchmil's ``splits.csv``, with one label file per bag beside it."""

from __future__ import annotations

from pathlib import Path

from foci.bags.importers.importer import (
    Imported,
    Importer,
    ImportOptions,
    derived_cases_note,
    filled,
    splits,
    unique,
)
from foci.bags.layouts.arrays import load_npy
from foci.bags.matching import case_of
from foci.bags.slide import Slide
from foci.bags.tables import Table
from foci.errors import CohortError


def _matches(columns: tuple[str, ...]) -> bool:
    """Columns ``bag_name`` and ``split``."""
    return {"bag_name", "split"} <= set(columns)


def _read(table: Table, options: ImportOptions) -> Imported:
    """Labels from ``labels/<bag>.npy`` beside the table."""
    folder = table.path.parent
    names = unique(table, filled(table, "bag_name"))
    slides = tuple(
        Slide(
            slide_id=name,
            case_id=case_of(name),
            label=_label(folder / "labels" / f"{name}.npy"),
            split=split,
        )
        for name, split in zip(names, splits(table, "split"), strict=True)
    )
    return Imported(slides, (derived_cases_note(names),))


def _label(path: Path) -> str:
    """The class number in a file, as text."""
    if not path.is_file():
        fix = "keep the folder labels/ beside the split table"
        raise CohortError(path, "does not exist", fix)
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
    "torchmil (bag_name, split, with labels/<bag>.npy beside the table)", _matches, _read
)
