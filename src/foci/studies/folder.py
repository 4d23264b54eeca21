"""A study on disk: ``study.yaml``, the plan, and the results of finished cells."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any

from foci.errors import FociError
from foci.files.atomic import write_whole
from foci.files.bounds import read_json
from foci.files.hashes import file_digest
from foci.studies.plan import Cell, Plan, make_plan
from foci.studies.study import Study, read_study

STUDY, PLAN = "study.yaml", "plan.json"
CELLS, WORK, RECORDS = "cells", "work", "records"


class StudyFolder:
    """A study: what was asked for, its cells, and what they have left.

    ::

        study.yaml            what was asked for
        plan.json             its cells, as last planned
        cells/<key>/          result of a finished cell; appears whole, by rename
        work/<key>/           a cell that is being computed, or was stopped; safe to delete
        records/<key>.json    seconds and machine of a finished cell, or why it failed

    Args:
        path: The folder, or its ``study.yaml``.
    """

    def __init__(self, path: str | Path) -> None:
        given = Path(path)
        self.path = given.parent if given.name == STUDY and not given.is_dir() else given
        if not (self.path / STUDY).is_file():
            raise FociError(self.path, f"has no {STUDY}", "make one with foci study new")

    @cached_property
    def study(self) -> Study:
        """The content of ``study.yaml``, with its profile filled in and absolute paths."""
        return read_study(self.path / STUDY)

    def plan(self) -> Plan:
        """The cells as last planned for this ``study.yaml``; planned now if they never were.

        Reading results needs no features: this works where they are out of reach.
        """
        stored = _read(self.path / PLAN)
        if stored.get("study_sha256") != file_digest(self.path / STUDY):
            return self.new_plan()
        return Plan.from_json(stored)

    def new_plan(self) -> Plan:
        """Plan the cells from the cohorts as they are now, and store the plan."""
        plan = make_plan(self.study)
        content = {"study_sha256": file_digest(self.path / STUDY), **plan.to_json()}
        write_whole(self.path / PLAN, json.dumps(content, indent=1) + "\n")
        return plan

    def result(self, cell: Cell) -> Path | None:
        """Folder of a finished cell; None if it is not finished.

        * ``train``: a model folder, or the ready-made checkpoint, for :func:`foci.backbones.load`.
        * ``fit``: a selector folder, for :func:`foci.selectors.load`; the score of its best epoch
          on the validation slides is in ``selector.json``.
        * ``audit``: an audit folder, for :meth:`foci.Audit.load`. The audit of a variant has only
          the ranking that varies: native and random stand in the main audit.
        * ``joint``: ``result.json``, see :class:`foci.studies.cells.JointResult`.
        * ``cost``: ``result.json``, see :class:`foci.studies.cells.CostResult`.
        """
        if cell.model is not None:
            return Path(cell.model)
        folder = self.path / CELLS / cell.key
        return folder if folder.is_dir() else None

    def failure(self, cell: Cell) -> str | None:
        """Why a cell failed, in one line; None if it did not, or is finished by now."""
        error = self.record(cell.key).get("error")
        return None if error is None or self.result(cell) is not None else str(error)

    def blocked(self, cell: Cell) -> str | None:
        """Name of a failed cell that an unfinished cell needs; None where there is none."""
        if self.result(cell) is not None:
            return None
        for key in cell.needs:
            needed = self.record(key)
            if "error" in needed and not (self.path / CELLS / key).is_dir():
                return str(needed["cell"])
        return None

    def seconds(self, cell: Cell) -> float | None:
        """How long a finished cell took; None where that is not known."""
        seconds = self.record(cell.key).get("seconds")
        return float(seconds) if isinstance(seconds, int | float) else None

    def record(self, key: str) -> dict[str, Any]:
        """What was noted of a cell when it ended: seconds, threads, device, or the error."""
        return _read(self.path / RECORDS / f"{key}.json")

    def write_record(self, cell: Cell, **noted: Any) -> None:
        """Note how a cell ended."""
        path = self.path / RECORDS / f"{cell.key}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {"cell": cell.name, **noted}
        write_whole(path, json.dumps(content, indent=1) + "\n", durable=False)


def _read(path: Path) -> dict[str, Any]:
    """The values of a JSON file; none if it is missing or damaged."""
    try:
        stored = read_json(path)
    except (OSError, ValueError):
        return {}
    return stored if isinstance(stored, dict) else {}
