"""Folders of published UNI2-h features, named after the class."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from foci.bags.cohort.feature_folder import find_features
from foci.bags.cohort.slide import Slide
from foci.bags.tasks.diagnostic import diagnostic_barcode, left_out_notes, tcga_slide
from foci.bags.tasks.task import BuiltCohort, Source
from foci.errors import CohortError


def read(source: Source, folders: Mapping[str, str]) -> BuiltCohort:
    """The diagnostic slides of one class folder, or of all class folders inside a folder.

    Args:
        source: The folder, with the class if the user named it.
        folders: Folder names of the publication, and the class of each.
    """
    slides: list[Slide] = []
    notes: tuple[str, ...] = ()
    for folder, label in _class_folders(source, folders):
        reasons = []
        for slide_id, path in find_features(folder).items():
            barcode = diagnostic_barcode(slide_id)
            if isinstance(barcode, str):
                reasons.append(barcode)
            else:
                slides.append(tcga_slide(slide_id, barcode, label, path))
        notes += left_out_notes(folder, reasons)
    if not slides:
        what = "holds no features of diagnostic TCGA slides (TCGA-..-....-..-..-DX1)"
        raise CohortError(source.path, what, "check the folder and its file names")
    return BuiltCohort(tuple(slides), notes)


def _class_folders(source: Source, folders: Mapping[str, str]) -> list[tuple[Path, str]]:
    path = source.path.absolute()
    known = {name.lower(): label for name, label in folders.items()}
    own = known.get(path.resolve().name.lower())
    if source.label is not None:
        if own is not None and own != source.label:
            what = f"is the folder of {own}, but was given as {source.label}"
            raise CohortError(path, what, "leave out the label, or give the right folder")
        return [(path, source.label)]
    if own is not None:
        return [(path, own)]
    inside = [p for p in sorted(path.iterdir()) if p.is_dir() and p.name.lower() in known]
    if inside:
        return [(p, known[p.name.lower()]) for p in inside]
    labels = " or ".join(f"{label}={source.path}" for label in dict.fromkeys(folders.values()))
    what = f"does not tell the class (its name is none of {', '.join(folders)})"
    raise CohortError(source.path, what, f"write {labels}")
