"""Recognise a training run that is complete, so that the same command ends at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foci.backbones.saved import FACTS, read_record
from foci.backbones.training.recipe import TrainingRecipe
from foci.backbones.training.run import STATE
from foci.bags import Cohort
from foci.bags.cohort.stamps import what_is_read
from foci.errors import CohortError
from foci.files.digest import digest


@dataclass(frozen=True)
class FinishedTraining:
    """What ``backbone.json`` says of a run.

    Attributes:
        metrics: Scores by split.
        notes: What was assumed.
    """

    metrics: dict[str, dict[str, float | None]]
    notes: tuple[str, ...]


def request_key(
    name: str, preset: str, widths: dict[str, Any], recipe: TrainingRecipe, cohort: Cohort
) -> str:
    """Digest of all that a run was asked for; feature files by name, size and time of change.

    Unlike :func:`~foci.backbones.training.loop.run_key` it can be computed before a file is read.

    Args:
        name: Architecture.
        preset: Its widths.
        widths: What replaces them.
        recipe: How to train.
        cohort: As read from the table, before unreadable slides are left out.
    """
    placed = [[slide.case_id, slide.split] for slide in cohort]
    return digest([name, preset, widths, recipe.model_dump(), what_is_read(cohort), placed])


def finished(folder: Path, key: str) -> FinishedTraining | None:
    """The run that a folder holds, if it is complete and was asked for the same; else None.

    Raises:
        CohortError: If the folder holds a backbone that was trained in another way.
    """
    if not (folder / FACTS).exists() or (folder / STATE).exists():
        return None  # with its state it was killed at its very end, and training goes on there
    record = read_record(folder)
    facts = record.model_extra or {}
    if facts.get("request") != key:
        what = "already holds a backbone trained with other options, slides or feature files"
        raise CohortError(folder, what, "choose another --out")
    return FinishedTraining(record.metrics, tuple(facts.get("notes", ())))
