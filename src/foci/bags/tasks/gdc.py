"""Downloads of the Genomic Data Commons: sample sheets and manifests.

A sample sheet names the project of every file; its columns changed in 2025 (``Sample Type`` gave
way to ``Tissue Type`` and others), but those needed here did not. A manifest names files only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from foci.bags.cohort.slide import Slide
from foci.bags.importers.rows import filled
from foci.bags.tables import Table, read_table
from foci.bags.tasks.diagnostic import diagnostic_barcode, left_out_notes, tcga_slide
from foci.bags.tasks.task import BuiltCohort, Source
from foci.errors import CohortError

_SHEET = ("File Name", "Project ID", "Case ID")
_ENDING = ".svs"


@dataclass(frozen=True)
class _File:
    where: str
    name: str
    project: str | None = None
    cases: frozenset[str] = frozenset()


def read(source: Source, projects: Mapping[str, str | None], unlabelled: str) -> BuiltCohort:
    """The diagnostic slides of a sample sheet or manifest; everything else is counted in a note.

    Args:
        source: The table, with the class if the user named it.
        projects: Projects of the task, and the class each stands for; None if for several.
        unlabelled: What to do where the project does not tell the class.
    """
    table = read_table(source.path)
    slides: list[Slide] = []
    reasons: list[str] = []
    for file in _files(table):
        slide_id = file.name.removesuffix(_ENDING)
        barcode = diagnostic_barcode(slide_id)
        if file.project is not None and file.project not in projects:
            reasons.append(f"files of the project {file.project}")
        elif slide_id == file.name:
            reasons.append(f"files that are no slides ({_ENDING})")
        elif isinstance(barcode, str):
            reasons.append(barcode)
        elif file.cases and barcode.case not in file.cases:
            what = f"Case ID {', '.join(sorted(file.cases))} does not fit {file.name}"
            raise CohortError(file.where, what, "download the sample sheet again")
        else:
            slides.append(tcga_slide(slide_id, barcode, _label(file, source, projects, unlabelled)))
    if not slides:
        what = f"holds no diagnostic slides (DX) of {', '.join(projects)}"
        raise CohortError(table.path, what, "download diagnostic slides of these projects")
    return BuiltCohort(tuple(slides), left_out_notes(table.path, reasons))


def _files(table: Table) -> list[_File]:
    if set(_SHEET) <= set(table.columns):
        names = filled(table, "File Name")
        return [
            _File(table.line(index), name, _project(table, index), _values(table, index, "Case ID"))
            for index, name in enumerate(names)
        ]
    if {"filename", "md5"} <= set(table.columns):
        names = filled(table, "filename")
        return [_File(table.line(index), name) for index, name in enumerate(names)]
    what = f"is no table of the GDC (columns: {', '.join(table.columns)})"
    fix = f"give a sample sheet ({', '.join(_SHEET)}) or a manifest (id, filename, md5, ...)"
    raise CohortError(table.path, what, fix)


def _values(table: Table, index: int, column: str) -> frozenset[str]:
    """The values of a cell that may hold several, ``A, B``."""
    cell = table.rows[index][column]
    return frozenset(value.strip() for value in cell.split(",") if value.strip())


def _project(table: Table, index: int) -> str:
    values = _values(table, index, "Project ID")
    if len(values) != 1:
        what = f"names {len(values)} projects, not one"
        raise CohortError(table.line(index), what, "delete the row or correct its Project ID")
    return min(values)


def _label(file: _File, source: Source, projects: Mapping[str, str | None], unlabelled: str) -> str:
    known = projects.get(file.project) if file.project is not None else None
    label = source.label or known
    if label is None:
        what = f"does not tell the class: the project {file.project} holds several"
        if file.project is None:
            what = "is a manifest, which names no project"
        raise CohortError(source.path, what, unlabelled)
    if known is not None and known != label:
        what = f"is of the project {file.project}, but was given as {label}"
        raise CohortError(file.where, what, "leave out the label, or give the right sheet")
    return label
