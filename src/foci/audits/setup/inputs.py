"""The model and the cohort that a configuration names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from foci.audits.config import Inputs
from foci.audits.settings import AuditSettings
from foci.backbones import Backbone
from foci.backbones.checkpoints import CheckpointFacts, open_checkpoint
from foci.backbones.saved import FACTS, WEIGHTS, ModelRecord
from foci.bags import N_CAP, Cohort
from foci.stamps import Unchanged


@dataclass(frozen=True)
class ModelMetadata:
    """What an audit records of a model beside its weights.

    Attributes:
        name: Name of its folder or file.
        split_seed: Seed of the patient split that it was trained with.
        model_notes: What was assumed when the checkpoint was read.
        trained_on: Slides that it was trained on.
    """

    name: str
    split_seed: int
    model_notes: tuple[str, ...]
    trained_on: frozenset[str]


@dataclass(frozen=True)
class Sources:
    """What an audit is of, or what a selector is fitted to.

    Attributes:
        backbone: The frozen classifier.
        cohort: The slides; none is read yet.
        name: What people call the model.
        split_seed: Of the patient split, if the table has none.
        model_notes: What was assumed when the checkpoint was read.
        trained_on: Slides that the model was trained on, as far as its folder says.
        places: Where everything came from, for the manifest.
        model_files: Files that the model was loaded from, to notice if they are replaced.
    """

    backbone: Backbone
    cohort: Cohort
    name: str
    split_seed: int
    model_notes: tuple[str, ...]
    trained_on: frozenset[str]
    places: dict[str, str]
    model_files: Unchanged


def open_sources(inputs: Inputs, device: str) -> Sources:
    """Load the model and read the label table.

    Classes, tile cap and split seed are those that the model was trained with, unless the
    inputs says otherwise.
    """
    files = model_files(inputs.model)
    checkpoint = open_checkpoint(inputs.model, **inputs.model_options)
    model = model_metadata(checkpoint.facts)
    return Sources(
        backbone=checkpoint.backbone.to(device),
        cohort=_cohort(inputs, checkpoint.facts.record),
        name=model.name,
        split_seed=model.split_seed if inputs.split_seed is None else inputs.split_seed,
        model_notes=model.model_notes,
        trained_on=model.trained_on,
        places=_described(inputs),
        model_files=files,
    )


def model_files(path: Path) -> Unchanged:
    """Files of a model, as they are now: a checkpoint, or the two files of a folder."""
    return Unchanged([path / FACTS, path / WEIGHTS] if path.is_dir() else [path])


def model_metadata(facts: CheckpointFacts) -> ModelMetadata:
    """Name, split seed, notes and training slides of a model, as far as its checkpoint says.

    Args:
        facts: Of the load that gave the backbone, so that the notes are about that backbone.
    """
    record = facts.record
    if record is None:
        return ModelMetadata(facts.path.stem, 0, facts.notes, frozenset())
    name, trained_on = facts.path.resolve().name, frozenset(record.trained_on)
    return ModelMetadata(name, record.split_seed, facts.notes, trained_on)


def _cohort(inputs: Inputs, record: ModelRecord | None) -> Cohort:
    names = () if record is None else record.classes
    n_cap = N_CAP if record is None else record.tile_cap(N_CAP)
    cohort = inputs.read(n_cap=n_cap, classes=names)
    return cohort if inputs.classes or names else with_alphabetical_classes(cohort)


def with_alphabetical_classes(cohort: Cohort) -> Cohort:
    """The cohort as it is, and a note that the order of its classes was assumed."""
    if not cohort.classes:
        return cohort
    names = ", ".join(cohort.classes)
    note = f"the checkpoint does not name its classes: taken to be {names}, in this order"
    return replace(cohort, notes=(*cohort.notes, note))


def _described(inputs: Inputs) -> dict[str, str]:
    own = inputs.model_dump(exclude={"out", *AuditSettings.model_fields}, exclude_none=True)
    return {name: _text(value) for name, value in own.items() if value != {}}


def _text(value: Any) -> str:
    if isinstance(value, Path):
        return str(value.resolve())
    if isinstance(value, dict):
        return ",".join(f"{key}={entry}" for key, entry in value.items())
    return ",".join(value) if isinstance(value, tuple) else str(value)
