"""The model and the cohort of an audit or a fit, opened the same way for every caller.

The order of the classes is the model's own, whatever order somebody gives.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from foci.audits.folder import AuditedSlide
from foci.audits.records import Alarm
from foci.audits.settings import AuditSettings
from foci.backbones import Backbone
from foci.backbones.callable import from_factory, is_factory
from foci.backbones.checkpoints import (
    Agreement,
    CheckpointFacts,
    OpenCheckpoint,
    agree,
    check_answers,
    checkpoint_files,
)
from foci.backbones.checkpoints.formats.base import ONE_OUTPUT
from foci.backbones.saved import FORMAT, ModelRecord, TrainingData
from foci.bags import Cohort
from foci.bags.bag import many_skipped
from foci.bags.cohort import CohortOptions, line_of
from foci.errors import CheckpointError, CohortError, FociError
from foci.files.hashes import Unchanged
from foci.outputs import Output
from foci.rankings.from_file import read_scores
from foci.words import counted, some

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Sources:
    """What an audit is of, or what a selector is fitted to.

    Attributes:
        backbone: The frozen classifier; an audit runs on its device and leaves it unchanged.
        cohort: The slides, none of which is read yet; classes in the classifier's order.
        name: What people call the model.
        model_notes: What was assumed when the model was loaded.
        trained_on: Slides that the model was trained on, as far as its folder says.
        record: All that the model's folder says, to compare the cohort with, or the encoder that
            another file names; None for others.
        alarms: What was found wrong while both were read.
        places: Where everything came from, for the manifest.
        model_files: Files that the model was loaded from, to notice if they are replaced.
        agreement: How the answers of the user's own code agree, if they were given.
        output: What the model's outputs are, as far as its file says.
        every_label: The model of all labels, where ``backbone`` is that of one of them.
    """

    backbone: Backbone
    cohort: Cohort
    name: str = "model"
    split_seed: int = 0
    model_notes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    trained_on: frozenset[str] = frozenset()
    record: ModelRecord | None = None
    alarms: tuple[Alarm, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)
    model_files: Unchanged = field(default_factory=lambda: Unchanged(()))
    agreement: Agreement | None = None
    output: Output | None = None
    every_label: Backbone | None = None


def open_sources(
    model: Backbone | str | Path,
    data: Cohort | CohortOptions,
    *,
    model_options: Mapping[str, Any] = MappingProxyType({}),
    expect: str | Path | None = None,
    expect_tolerance: float | None = None,
    split_seed: int | None = None,
    n_cap: int | None = None,
    device: str | None = None,
    output: Output | None = None,
) -> Sources:
    """Load the model and read the label table, or take either as it is.

    Classes are always in the model's order, if its folder names them. Tile cap and split seed are
    those that the model was trained with, unless somebody chose others; any other model reads all
    tiles.

    Args:
        model: A backbone, a folder of ``foci train``, a checkpoint file, or ``package.module:name``
            of a factory, which gets ``model_options`` as arguments.
        data: A cohort, or what to read it with.
        model_options: What a checkpoint's tensors do not show.
        expect: Table of answers of the user's own code, which decide the options left open.
        expect_tolerance: Largest difference from them; None for the usual one.
        split_seed: Of the patient split; None for the model's.
        n_cap: Most tiles per bag, where neither the model nor the cohort has a cap.
        device: Where the model goes; None leaves it where it is.
        output: What the model's outputs are; None for what its file says.

    Raises:
        FociError: If something else than a model is given, other classes than the model's are, or
            the model's answers are not the expected ones.
    """
    if not isinstance(model, Backbone | str | Path):
        fix = "wrap it: foci.backbones.CallableBackbone(...)"  # type: ignore[unreachable]
        raise FociError("model", f"is a {type(model).__name__}", fix)
    places = {} if isinstance(data, Cohort) else _places(data)
    if not isinstance(model, Backbone):
        places["model"] = str(Path(model).resolve())
    if expect is not None:
        places["expect"] = str(Path(expect).resolve())
    agreement, called = None, None
    if not isinstance(model, Backbone) and not Path(model).exists() and is_factory(str(model)):
        called = places["model"] = str(model)
        model, model_options = from_factory(called, model_options), {}
    if isinstance(model, Backbone):
        if model_options:
            raise FociError("model_options", "are given with a model", "give them to load()")
        cohort = _with_cap(data, n_cap) if isinstance(data, Cohort) else data.read(n_cap=n_cap)
        if expect is not None:
            agreement = check_answers(model, expect, cohort)
        sources = Sources(
            model, cohort, called or model.architecture, split_seed or 0, model.notes, places=places
        )
    else:
        files, file = model_files(Path(model)), OpenCheckpoint(model)
        cohort, alarms = _as_trained(data, file.record, file.classes, n_cap)
        if expect is None:
            checkpoint = file.load(**model_options)
        else:
            checkpoint, agreement = agree(
                file, expect, cohort,
                tolerance=expect_tolerance, device=device or "cpu", **model_options,
            )  # fmt: skip
        path, record = checkpoint.facts.path, checkpoint.facts.record
        trained = 0 if record is None else record.split_seed
        sources = Sources(
            backbone=checkpoint.backbone,
            cohort=cohort,
            name=path.stem if record is None else path.resolve().name,
            split_seed=trained if split_seed is None else split_seed,
            model_notes=checkpoint.facts.notes,
            trained_on=frozenset(() if record is None else record.trained_on),
            record=_encoder_record(checkpoint.facts) if record is None else record,
            alarms=alarms,
            places=places,
            model_files=files,
            output=file.output,
        )
        asked = output or file.output
        if asked is None and ONE_OUTPUT in checkpoint.facts.notes:
            what = "has one output: a sigmoid, a risk or a number, which no tensor shows"
            raise CheckpointError(path, what, "give --output class, cox or regression")
        if asked not in (None, "class") and ONE_OUTPUT in checkpoint.facts.notes:
            kept = tuple(note for note in sources.model_notes if note != ONE_OUTPUT)
            sources = replace(sources, model_notes=kept)
    if agreement is not None:
        notes = (*sources.model_notes, agreement.note)
        sources = replace(sources, model_notes=notes, agreement=agreement)
    return sources if device is None else replace(sources, backbone=sources.backbone.to(device))


def announce(cohort: Cohort, notes: Sequence[str] = (), alarms: Sequence[Alarm] = ()) -> None:
    """Log alarms, tile cap, assumptions about model and slides, and skipped slides with reasons.

    Where more than 10 % of the slides are skipped, that comes first.
    """
    many = many_skipped(len(cohort.skipped), len(cohort) + len(cohort.skipped))
    if many is not None:
        _LOG.warning(many)
    for alarm in alarms:
        _LOG.error("ALARM, %s: %s", alarm.kind, alarm.sentence)
    cap = cohort.store.n_cap
    if cap is not None:
        _LOG.info(
            "of a slide at most %s tiles are read, those with the largest features", f"{cap:,}"
        )
    for note in (*notes, *cohort.notes):
        _LOG.info(line_of(note))
    for slide in cohort.skipped:
        _LOG.info("skipped %s: %s", slide.slide_id, slide.reason)


def model_files(path: Path) -> Unchanged:
    """Files of a model, as they are now: a checkpoint, or the two files of a folder."""
    return Unchanged(checkpoint_files(path))


def _as_trained(
    data: Cohort | CohortOptions,
    record: ModelRecord | None,
    names: tuple[str, ...],
    n_cap: int | None,
) -> tuple[Cohort, tuple[Alarm, ...]]:
    """The cohort with the model's classes and tile cap, and an alarm if classes were swapped.

    A tile cap that the caller chose is kept. Class names in alphabetical order are those of a
    plain table; in any other order somebody has put them.
    """
    n_cap = n_cap if record is None else record.tile_cap(n_cap)
    if isinstance(data, Cohort):
        trained = record is not None and "n_cap" in record.model_fields_set
        cohort = _with_cap(data, n_cap, trained=trained)
        given = data.classes if list(data.classes) != sorted(data.classes) else ()
        cohort = cohort.with_classes(names) if names else cohort
    else:
        given = tuple(data.classes or ())
        if record is None and given and sorted(given) != sorted(names):
            names = ()  # what other projects' files call the classes may be called otherwise here
        if names and given and sorted(given) != sorted(names):
            what = f"are {', '.join(given)}, but the model was trained on {', '.join(names)}"
            fix = "leave them out, and name the labels as in training"
            raise CohortError("classes", what, fix)
        own = data.model_copy(update={"classes": names}) if names else data
        cohort = own.read(n_cap=n_cap)
    if names:
        return cohort, _swapped(given, names)
    if given or not cohort.classes:
        return cohort, ()
    assumed = (
        f"the checkpoint does not name its classes: taken to be {', '.join(cohort.classes)}, "
        "in this order"
    )
    return replace(cohort, notes=(*cohort.notes, assumed)), ()


def _encoder_record(facts: CheckpointFacts) -> ModelRecord | None:
    """What a file of another project says of the features that it was trained on."""
    if facts.encoder is None:
        return None
    data = TrainingData(width=facts.config["d_in"], encoders={facts.encoder: 1})
    return ModelRecord(
        format=FORMAT,
        architecture=facts.architecture,
        config=facts.config,
        fingerprint="",
        parameters=facts.parameters,
        data=data,
    )


def _swapped(given: Sequence[str], names: Sequence[str]) -> tuple[Alarm, ...]:
    if not given or tuple(given) == tuple(names):
        return ()
    sentence = (
        f"The classes were given in the order {', '.join(given)}; the model was trained with "
        f"{', '.join(names)}, and that order is used: outputs and labels are matched by name."
    )
    return (Alarm(kind="class order", sentence=sentence, numbers={"classes": len(names)}),)


def _with_cap(cohort: Cohort, n_cap: int | None, *, trained: bool = False) -> Cohort:
    """Cut bags as in training, unless the cohort was read with a cap of its own."""
    store = cohort.store
    if n_cap == store.n_cap:
        return cohort
    if store.n_cap is None:
        return replace(cohort, store=store.with_cap(n_cap))
    if not trained:
        return cohort
    own = "all tiles" if n_cap is None else f"at most {counted(n_cap, 'tile')}"
    kept = f"at most {counted(store.n_cap, 'tile')}"
    cut = f"the cohort keeps {kept} per bag, the model was trained with {own}"
    return replace(cohort, notes=(*cohort.notes, cut))


def cut_slides(slides: Sequence[AuditedSlide], n_cap: int | None) -> tuple[str, ...]:
    """How many of the audited slides a tile cap has cut, in one sentence; nothing without a cut."""
    cut = sum(slide.n_tiles < slide.n_total for slide in slides)
    if not cut or n_cap is None:
        return ()
    of = f"{cut:,} of {counted(len(slides), 'slide')} {'was' if cut == 1 else 'were'}"
    return (
        f"{of} cut to {n_cap:,} tiles, those with the largest features: all answers are on them",
    )


def _places(options: CohortOptions) -> dict[str, str]:
    """Everything that a configuration says of model and cohort, as text."""
    own = options.model_dump(exclude={"out", *AuditSettings.model_fields}, exclude_none=True)
    return {name: _text(value) for name, value in own.items() if value != {}}


def _text(value: Any) -> str:
    if isinstance(value, Path):
        return str(value.resolve())
    if isinstance(value, dict):
        return ",".join(f"{key}={entry}" for key, entry in value.items())
    return ",".join(value) if isinstance(value, tuple) else str(value)


def check_maps(cohort: Cohort, settings: AuditSettings) -> tuple[str, ...]:
    """Read every score file before the run; notes on the map, and on slides without scores.

    Raises:
        FociError: If a file cannot be read, or has scores of none of the slides to audit.
    """
    notes: list[str] = []
    present = {slide.split for slide in cohort} - {None}
    audited = [slide for slide in cohort if not present or slide.split == settings.split]
    for name, path in settings.map_files.items():
        if settings.map is not None and name == settings.map_name:
            notes.append(f"the map {name!r} comes from {path.name}, not from the model")
        file = read_scores(path)
        without = [slide.slide_id for slide in audited if file.named(slide.slide_id) is None]
        if len(without) == len(audited):
            what = f"has scores of none of the {counted(len(audited), 'slide')} to audit"
            first = f"(first slide: {without[0]}; first in the file: {next(iter(file.slides))})"
            raise FociError(path, f"{what} {first}", "use the slide names of the cohort")
        if without:
            notes.append(f"{path.name} has no scores of {some(without)}: not audited")
    return tuple(notes)
