"""The order of the classes: the model's own, whatever order somebody gives."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from foci.audits.records import Alarm
from foci.audits.settings import NATIVE, AuditSettings, Inputs
from foci.backbones import Backbone
from foci.backbones.checkpoints import Agreement, CheckpointFacts, OpenCheckpoint, agree
from foci.backbones.saved import RECORD, WEIGHTS, ModelRecord
from foci.bags import N_CAP, Cohort
from foci.bags.bag import many_skipped
from foci.bags.cohort import line_of
from foci.errors import CohortError, FociError
from foci.files.hashes import Unchanged
from foci.rankings.from_file import read_scores
from foci.words import counted, some

_LOG = logging.getLogger(__name__)


def check_class_names(given: Sequence[str], model: Sequence[str]) -> None:
    """Refuse class names that are not those of the model.

    Raises:
        CohortError: If a name is missing or not known to the model.
    """
    if sorted(given) != sorted(model):
        raise CohortError(
            "classes",
            f"are {', '.join(given)}, but the model was trained on {', '.join(model)}",
            "leave them out, and name the labels as in training",
        )


def other_order(given: Sequence[str], model: Sequence[str]) -> Alarm | None:
    """Say that classes were given in another order than the model's, which is used instead.

    >>> other_order(("a", "b"), ("a", "b")) is None
    True
    """
    if not given or tuple(given) == tuple(model):
        return None
    return Alarm(
        kind="class order",
        sentence=(
            f"The classes were given in the order {', '.join(given)}; the model was trained with "
            f"{', '.join(model)}, and that order is used: outputs and labels are matched by name."
        ),
        numbers={"classes": len(model)},
    )


# The model and the cohort that a configuration names.


@dataclass(frozen=True)
class ModelMetadata:
    """What an audit records of a model beside its weights.

    Attributes:
        name: Name of its folder or file.
        split_seed: Seed of the patient split that it was trained with.
        model_notes: What was assumed when the checkpoint was read.
        trained_on: Slides that it was trained on.
        record: All that its folder says; None for any other checkpoint.
    """

    name: str
    split_seed: int
    model_notes: tuple[str, ...]
    trained_on: frozenset[str]
    record: ModelRecord | None


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
        record: All that the model's folder says; None for any other checkpoint.
        alarms: What was found wrong while both were read.
        places: Where everything came from, for the manifest.
        agreement: How the answers of the user's own code were met, if they were given.
        model_files: Files that the model was loaded from, to notice if they are replaced.
    """

    backbone: Backbone
    cohort: Cohort
    name: str
    split_seed: int
    model_notes: tuple[str, ...]
    trained_on: frozenset[str]
    record: ModelRecord | None
    alarms: tuple[Alarm, ...]
    places: dict[str, str]
    model_files: Unchanged
    agreement: Agreement | None = None


def open_sources(inputs: Inputs, device: str) -> Sources:
    """Load the model and read the label table.

    Tile cap and split seed are those that the model was trained with, unless the inputs say
    otherwise. Classes are always in the model's order, if its folder names them.

    Raises:
        FociError: If the inputs name other classes than the model's folder.
    """
    files, file, agreement = model_files(inputs.model), OpenCheckpoint(inputs.model), None
    cohort, alarms = _cohort(inputs, file.record)
    if inputs.expect is None:
        checkpoint = file.load(**inputs.model_options)
    else:
        checkpoint, agreement = agree(
            file,
            inputs.expect,
            cohort,
            tolerance=inputs.expect_tolerance,
            device=device,
            **inputs.model_options,
        )
    model = model_metadata(checkpoint.facts)
    agreed = () if agreement is None else (agreement.note,)
    return Sources(
        backbone=checkpoint.backbone.to(device),
        cohort=cohort,
        name=model.name,
        split_seed=model.split_seed if inputs.split_seed is None else inputs.split_seed,
        model_notes=(*model.model_notes, *agreed),
        trained_on=model.trained_on,
        record=model.record,
        alarms=alarms,
        places=_described(inputs),
        agreement=agreement,
        model_files=files,
    )


def announce(cohort: Cohort, notes: Sequence[str] = (), alarms: Sequence[Alarm] = ()) -> None:
    """Log alarms, the assumptions about model and slides, and the skipped slides with reasons.

    Where more than 10 % of the slides are skipped, that comes first.
    """
    many = many_skipped(len(cohort.skipped), len(cohort) + len(cohort.skipped))
    if many is not None:
        _LOG.warning(many)
    for alarm in alarms:
        _LOG.error("ALARM, %s: %s", alarm.kind, alarm.sentence)
    for note in (*notes, *cohort.notes):
        _LOG.info(line_of(note))
    for slide in cohort.skipped:
        _LOG.info("skipped %s: %s", slide.slide_id, slide.reason)


def model_files(path: Path) -> Unchanged:
    """Files of a model, as they are now: a checkpoint, or the two files of a folder."""
    return Unchanged([path / RECORD, path / WEIGHTS] if path.is_dir() else [path])


def model_metadata(facts: CheckpointFacts) -> ModelMetadata:
    """Name, split seed, notes and training slides of a model, as far as its checkpoint says.

    Args:
        facts: Of the load that gave the backbone, so that the notes are about that backbone.
    """
    record = facts.record
    if record is None:
        return ModelMetadata(facts.path.stem, 0, facts.notes, frozenset(), None)
    name, trained_on = facts.path.resolve().name, frozenset(record.trained_on)
    return ModelMetadata(name, record.split_seed, facts.notes, trained_on, record)


def _cohort(inputs: Inputs, record: ModelRecord | None) -> tuple[Cohort, tuple[Alarm, ...]]:
    names = () if record is None else record.classes
    n_cap = N_CAP if record is None else record.tile_cap(N_CAP)
    if not names:
        cohort = inputs.read(n_cap=n_cap)
        return cohort if inputs.classes else with_alphabetical_classes(cohort), ()
    given = inputs.classes or names
    check_class_names(given, names)
    swapped = other_order(given, names)
    own = inputs.model_copy(update={"classes": names})
    return own.read(n_cap=n_cap), () if swapped is None else (swapped,)


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


# Check the score files of an audit: somebody else's maps, among the rankings or as the map.


def check_maps(cohort: Cohort, settings: AuditSettings) -> tuple[str, ...]:
    """Read every score file before the run; notes on the map, and on slides without scores.

    Raises:
        FociError: If a file cannot be read, or has scores of none of the slides to audit.
    """
    notes: list[str] = []
    for name, path in settings.map_files.items():
        if name == NATIVE:
            notes.append(
                f"the ranking 'native' is the map of {path.name}, not the model's own scores"
            )
        notes += _without_scores(path, cohort, settings)
    return tuple(notes)


def _without_scores(path: Path, cohort: Cohort, settings: AuditSettings) -> list[str]:
    file = read_scores(path)
    present = {slide.split for slide in cohort} - {None}
    audited = [slide for slide in cohort if not present or slide.split == settings.split]
    without = [slide.slide_id for slide in audited if file.named(slide.slide_id) is None]
    if len(without) == len(audited):
        what = f"has scores of none of the {counted(len(audited), 'slide')} to audit"
        first = f"(first slide: {without[0]}; first in the file: {next(iter(file.slides))})"
        raise FociError(path, f"{what} {first}", "use the slide names of the cohort")
    return [f"{path.name} has no scores of {some(without)}: not audited"] if without else []
