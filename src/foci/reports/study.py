"""Write the page of a study: all its tables and figures, and links to every audit's report."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from foci.audits import StoredAudit
from foci.audits.folder import REPORT
from foci.files.atomic import sweep, write_whole
from foci.progress import track
from foci.reports.first_screen import counted_tiles, first_screen
from foci.reports.html import render
from foci.reports.models import StudyPayload
from foci.reports.report import write_report
from foci.reports.text import is_stand_in
from foci.studies import figures, tables
from foci.studies.plan import MAIN, StudyFolder
from foci.studies.read import Place, audit_folders
from foci.studies.table import (
    Cell,
    Column,
    Table,
    difference_text,
    footnote,
    own_text,
    paper_text,
    shown,
)
from foci.words import counted, decimals

PAGE = "study.html"


def write_study_page(folder: StudyFolder | str | Path, *, reports: bool = True) -> Path:
    """Write tables, figures and ``study.html`` of a study from whatever is finished.

    With ``reports``, audits without a report get one.
    """
    study = folder if isinstance(folder, StudyFolder) else StudyFolder(folder)
    made = tables.write(study)
    drawn = figures.write(study, made.numbers)
    audits = audit_folders(study)
    finished = [path for found in audits.values() for path in found.values()]
    if reports:
        missing = [path for path in finished if not (path / REPORT).is_file()]
        for path in track(missing, "reports"):
            write_report(path)
    svgs = study.path / figures.FOLDER
    page = render(
        "study.html.j2",
        StudyPayload(name=study.study.name),
        pictures=True,
        name=study.study.name,
        facts=f"{counted(len(made.numbers.cohorts), 'cohort')}, "
        f"{counted(len(made.numbers.backbones), 'backbone')}, "
        f"{counted(len(study.study.seeds), 'seed')}; {counted(len(finished), 'audit')} finished of "
        f"{len(study.plan().select(kind='audit'))}.",
        header=made.header,
        answers=_answers(study, audits),
        beside=study.study.published,
        tables=[_table(table) for table in made.tables],
        figures=[
            {
                "label": figure.label,
                "caption": figure.caption,
                "source": "data:image/svg+xml;base64,"
                + base64.b64encode((svgs / f"{figure.label}.svg").read_bytes()).decode("ascii"),
            }
            for figure in drawn
        ],
        audits=_audits(study, audits),
        notes=study.plan().notes,
    )
    path = study.path / PAGE
    sweep(study.path)
    write_whole(path, page)
    return path


def _answers(study: StudyFolder, audits: dict[Place, dict[str, Path]]) -> dict[str, Any]:
    """What the audits of the study's main variant answer: cohorts down, backbones across."""
    main = {place: found for place, found in audits.items() if place.variant == MAIN}
    main = {place: found for place, found in main.items() if place.n_cap is None and found}
    backbones = list(dict.fromkeys(place.backbone for place in main))
    rows: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for place, found in main.items():
        cells = rows.setdefault(shown(place.cohort), {}).setdefault(place.backbone, [])
        for seed, path in found.items():
            audit = StoredAudit.load(path)
            first, chart = first_screen(audit.summary, audit.manifest), audit.summary.carried
            typical = None if chart is None else chart.typical
            few_sure = chart is not None and chart.relative is not None
            cells.append(
                {
                    "word": first.word,
                    "tone": first.tone,
                    "more": "; ".join(
                        [
                            *([] if typical is None else [counted_tiles(typical)]),
                            *["stand-in map"] * is_stand_in(audit.manifest),
                            *["relative"] * few_sure,
                            f"seed {seed}",
                        ]
                    ),
                    "relative": few_sure,
                    "link": _link(study, path),
                }
            )
    every = (cell for cells in rows.values() for own in cells.values() for cell in own)
    return {
        "backbones": [(name, shown(name)) for name in backbones],
        "rows": rows,
        "relative": any(cell["relative"] for cell in every),
    }


def _link(study: StudyFolder, audit: Path) -> str | None:
    """Where the report of an audit lies beside the page; None where it has none."""
    report = audit / REPORT
    near = report.is_file() and audit.is_relative_to(study.path)
    return report.relative_to(study.path).as_posix() if near else None


def _table(table: Table) -> dict[str, Any]:
    """A table as the template shows it."""
    reasons: list[str] = []
    rows, group = [], ""
    for row in table.rows:
        rows.append(
            {
                "group": row.group if row.group != group else "",
                "names": row.names,
                "cells": [_cell(row.cells.get(c.key), c, reasons) for c in table.columns],
            }
        )
        group = row.group
    return {
        "label": table.label,
        "title": table.title,
        "heads": [*table.heads, *(column.heading for column in table.columns)],
        "rows": rows,
        "notes": table.notes,
        "reasons": reasons,
    }


def _cell(cell: Cell | None, column: Column, reasons: list[str]) -> dict[str, Any]:
    if cell is None:
        return {"own": "", "words": False, "gap": None, "paper": None, "compared": None, "z": None}
    gap = cell.value.gap
    return {
        "own": own_text(cell, column),
        "words": cell.text is not None,
        "gap": None if gap is None else footnote(reasons, gap),
        "paper": None if cell.paper is None else paper_text(cell.paper, column),
        "compared": difference_text(cell, column),
        "z": None if cell.z is None else decimals(cell.z, 1),
        "far": cell.marked,
    }


def _audits(study: StudyFolder, audits: dict[Place, dict[str, Path]]) -> list[dict[str, Any]]:
    """Links to the reports of every place, by seed."""
    rows = []
    for place, found in audits.items():
        links = [(seed, _link(study, path)) for seed, path in found.items()]
        variant = place.variant if place.n_cap is None else f"{place.variant} = {place.n_cap}"
        rows.append(
            {
                "cohort": shown(place.cohort),
                "backbone": shown(place.backbone),
                "variant": variant,
                "links": links,
            }
        )
    return rows
