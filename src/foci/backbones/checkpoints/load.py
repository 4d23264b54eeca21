"""Load a checkpoint file or folder as a frozen backbone.

A file of another project takes six steps: its container is opened without executing anything, the
state dict is found inside (:mod:`~foci.backbones.checkpoints.containers`), its tensor names tell
the format (:mod:`~foci.backbones.checkpoints.formats`), options settle what no tensor shows, the
tensors are assigned to a backbone of FOCI, strictly: none missing, none left over. If the user
has answers of the model, :mod:`~foci.backbones.checkpoints.expect` compares them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from foci.backbones.base import ARCHITECTURES, PRESETS, Backbone
from foci.backbones.checkpoints.containers import (
    CONFIG,
    HF_WEIGHTS,
    describe,
    hugging_face_files,
    read_content,
    state_dict_of,
)
from foci.backbones.checkpoints.formats import complete_options, recognise
from foci.backbones.checkpoints.formats.base import ONE_OUTPUT, KeyMapping, Option, listed
from foci.backbones.saved import RECORD, WEIGHTS, ModelRecord, load_folder, read_record
from foci.errors import CheckpointError, FociError
from foci.outputs import Output

_LOG = logging.getLogger("foci")
_FIX = "give weights of an unmodified model, or wrap it in foci.backbones.CallableBackbone"
_TASKS: tuple[tuple[Output, str], ...] = (
    ("class", "classif|subtyp|grading"),
    ("regression", "regress"),
    ("cox", "surviv|cox"),
)
"""What a file's settings call a task, and the outputs that it has."""

_MOST_PARTS = 4096
"""Most classes, branches or layers; each is a module of its own."""


@dataclass(frozen=True)
class CheckpointFacts:
    """What a checkpoint is, without its numbers.

    Attributes:
        path: The file, or the folder.
        format: Whose file it is: ``"CLAM-SB"``, ``"ABMIL of torchmil"``, ... or ``"FOCI"``.
        architecture: Name of the backbone's class.
        config: The class's constructor arguments.
        parameters: Number of parameters.
        notes: What was assumed because no tensor shows it, and what was left out.
        ignored: Tensors that play no part in a prediction.
        classes: Class names in the order of the outputs, where the file or its folder gives them.
        encoder: Tile encoder of the features, likewise.
        record: Content of ``backbone.json`` (classes, recipe, slides trained on, ...) for a
            folder that FOCI wrote; None for any other checkpoint.
    """

    path: Path
    format: str
    architecture: str
    config: dict[str, Any]
    parameters: int
    notes: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    encoder: str | None = None
    record: ModelRecord | None = None


@dataclass(frozen=True)
class LoadedCheckpoint:
    """A checkpoint's backbone, frozen and in ``eval`` mode, with the facts of the same read."""

    backbone: Backbone
    facts: CheckpointFacts


def load(
    path: str | Path, *, expect: str | None = None, d_in: int | None = None, **options: Any
) -> Backbone:
    """Load a checkpoint's backbone, frozen and in ``eval`` mode.

    Args:
        path: A folder that FOCI wrote (or its ``weights.safetensors``), a Hugging Face folder
            (``config.json`` and ``model.safetensors``), or a file of another project: ``.pt``,
            ``.pth``, ``.ckpt``, ``.bin`` or ``.safetensors``. Objects pickled into it are never
            executed.
        expect: Refuse another architecture (``"clam-sb"``) or classifier (``"transmil"``).
        d_in: Refuse another feature width.
        **options: What the tensors do not show (``heads``, ``aligned``, ``landmarks``,
            ``activation``, ...). What is assumed without them is logged as a warning (logger
            ``foci``) and kept in the backbone's ``notes``.
    """
    loaded = open_checkpoint(path, **options)
    facts = loaded.facts
    what = f"{facts.format} ({facts.architecture}) for features of width {facts.config['d_in']}"
    if expect is not None and facts.architecture not in _architectures(expect):
        raise CheckpointError(facts.path, f"is {what}, not {expect}", "give another checkpoint")
    if d_in is not None and facts.config["d_in"] != d_in:
        raise CheckpointError(
            facts.path, f"is {what}, not {d_in}", "give features of the encoder it was trained on"
        )
    for note in facts.notes:
        _LOG.warning("%s: %s", facts.path, note)
    return loaded.backbone


def inspect(path: str | Path, **options: Any) -> CheckpointFacts:
    """Describe a checkpoint; arguments as for :func:`load`, and refuses what it refuses."""
    return open_checkpoint(path, **options).facts


def open_checkpoint(path: str | Path, **options: Any) -> LoadedCheckpoint:
    """Read a checkpoint once, for its backbone and its facts; arguments as for :func:`load`."""
    return OpenCheckpoint(path).load(**options)


class OpenCheckpoint:
    """A checkpoint that is read once and may be loaded with several options; as :func:`load`.

    Attributes:
        path: The file, or the folder.
        options: Settings that a file of its format leaves open, by name.
        record: What a folder of FOCI says of its training; None for any other file.
        classes: Class names in the order of the outputs, where they are known.
        output: What the outputs are, where the file says so.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.options: Mapping[str, Option] = {}
        self.record: ModelRecord | None = None
        self.output: Output | None = None
        *config, weights = checkpoint_files(self.path)
        if weights.name == RECORD:
            self._folder = weights.parent
            self.record = read_record(self._folder)
            self.classes = tuple(self.record.classes)
            self.output = self.record.output
        else:
            self._state = state_dict_of(read_content(weights), self.path)
            self._description = describe(self._state, *config)
            self._format = recognise(self._state, self._description.architecture)
            self.options = self._format.options
            self.classes = self._description.classes
            self._check_task()

    def load(self, **options: Any) -> LoadedCheckpoint:
        """The backbone with these options, and its facts."""
        if self.record is not None:
            if options:
                what = f"has no option {min(options)!r}"
                raise CheckpointError(self._folder, what, "backbone.json already says everything")
            own = load_folder(self._folder, self.record)
            return _described(own, path=self._folder, format="FOCI", record=self.record)
        known = {
            name: one for name, one in self._description.options.items() if name in self.options
        }
        values, assumed = complete_options(self._format, {**known, **options}, self._state)
        try:
            mapping = self._format.read(self._state, values)
        except (RuntimeError, IndexError) as error:  # shapes that cannot be put together
            why = str(error).partition("\n")[0]
            what = f"is {self._format.name}, but its tensors do not fit ({why})"
            raise self._state.refused(what, _FIX) from error
        backbone, notes = _assign(mapping, self._format.name)
        self._check_widths(backbone, mapping)
        backbone.one_number = ONE_OUTPUT in mapping.notes
        if self.output == "cox" and ONE_OUTPUT not in mapping.notes:
            self.output = "hazards"  # one per time bin
        if self.classes:
            notes += (f"the file names its classes: {', '.join(self.classes)}",)
        if self._description.encoder is not None:
            notes += (f"the file names its encoder: {self._description.encoder}",)
        return _described(
            backbone,
            path=self._state.path,
            format=self._format.name,
            notes=(*self._state.notes, *assumed, *mapping.notes, *notes),
            ignored=tuple(key for key in mapping.state if mapping.ignores(key)),
            classes=self.classes,
            encoder=self._description.encoder,
        )

    def _check_task(self) -> None:
        """Refuse a model that its own settings call something else than a model of tiles."""
        task, level = self._description.task, self._description.level
        if task is not None:
            self.output = next((one for one, text in _TASKS if re.search(text, task, re.I)), None)
            if self.output is None:
                what = f"is {self._format.name} for {listed([task])}, which FOCI cannot audit"
                fix = "give a model of classes, survival or a number"
                raise self._state.refused(what, fix)
        if level is not None and level not in ("tile", "patch"):
            what = f"is {self._format.name} on features of a whole {listed([level])}"
            raise self._state.refused(what, "give a classifier that reads tiles")

    def _check_widths(self, backbone: Backbone, mapping: KeyMapping) -> None:
        """Refuse tensors of other widths than the file's own settings name."""
        described, one = self._description, ONE_OUTPUT in mapping.notes
        outputs = {backbone.n_classes, *([1] if one else [])}
        for named, own, what in (
            (described.d_in, {backbone.d_in}, "features of width"),
            (described.n_classes, outputs, "classes:"),
            (len(described.classes) or None, {backbone.n_classes}, "classes:"),
        ):
            if named is not None and named not in own:
                text = f"names {what} {named}, but its tensors have {max(own)}"
                raise self._state.refused(text, "give the settings and the weights of one model")


def checkpoint_files(path: Path) -> tuple[Path, ...]:
    """Files that a checkpoint is read from, the weights or ``backbone.json`` last."""
    folder = path if path.is_dir() else path.parent
    if (folder / RECORD).is_file() and (path.is_dir() or path.name in (WEIGHTS, RECORD)):
        return folder / WEIGHTS, folder / RECORD
    if path.is_dir():
        found = hugging_face_files(path)
        if found is None:
            what = f"holds neither {RECORD} (foci train) nor {CONFIG} (Hugging Face)"
            raise CheckpointError(path, what, "give the checkpoint file itself")
        return found
    beside = path.name in HF_WEIGHTS and (folder / CONFIG).is_file()
    return (folder / CONFIG, path) if beside else (path,)


def _described(backbone: Backbone, **facts: Any) -> LoadedCheckpoint:
    backbone.notes = facts.get("notes", ())
    described = CheckpointFacts(
        architecture=backbone.architecture,
        config=backbone.config,
        parameters=sum(p.numel() for p in backbone.parameters()),
        **facts,
    )
    return LoadedCheckpoint(backbone, described)


def _architectures(name: str) -> set[str]:
    """Architectures of a classifier with all its presets, or the one that is named itself."""
    if name in ARCHITECTURES and name not in PRESETS:
        return {name}
    return {preset.architecture.architecture for preset in PRESETS[name].values()}


def _assign(mapping: KeyMapping, format_name: str) -> tuple[Backbone, tuple[str, ...]]:
    """The frozen backbone with the file's tensors in float32, and a note on any other precision.

    Refused, by the file's keys: a tensor that is missing, one of another shape, one that is not
    finite, and one that the backbone has no place for. A layer without a bias has a bias of 0.
    """
    state = mapping.state
    backbone = _empty_backbone(mapping)
    if backbone.n_classes < 2:
        what = f"is {format_name} with {backbone.n_classes} class"
        raise state.refused(what, "give a classifier of two or more classes")
    places = {name: mapping.name_of(name) for name in backbone.state_dict()}
    unbiased = {
        theirs: torch.zeros(backbone.state_dict()[name].shape)
        for name, theirs in places.items()
        if theirs not in state
        and theirs.endswith(".bias")
        and f"{theirs.removesuffix('.bias')}.weight" in state
    }
    state = state.replaced(unbiased)
    if missing := [theirs for theirs in places.values() if theirs not in state]:
        raise state.refused(f"is {format_name}, but lacks {listed(missing)}", _FIX)
    used = set(places.values())
    if extra := [key for key in state if key not in used and not mapping.ignores(key)]:
        raise state.refused(f"is {format_name}, but also holds {listed(extra)}", _FIX)
    tensors: dict[str, Tensor] = {}
    for name, place in backbone.state_dict().items():
        theirs, tensor = places[name], state[places[name]]
        if tensor.shape != place.shape:
            shapes = f"{list(tensor.shape)}, which does not fit {list(place.shape)}"
            raise state.refused(f"is {format_name}, but {theirs} has shape {shapes}", _FIX)
        tensors[name] = tensor.to(torch.float32)
        if not bool(torch.isfinite(tensors[name]).all()):
            raise state.refused(f"{theirs} holds NaN or Inf", "take an earlier checkpoint")
    backbone.load_state_dict(tensors, assign=True)
    stored = {str(state[key].dtype).removeprefix("torch.") for key in used} - {"float32"}
    notes: tuple[str, ...] = ()
    if stored:
        notes = (f"stored as {' and '.join(sorted(stored))}, used as float32",)
    if unbiased:
        notes += (f"layers without a bias: {listed([key[:-5] for key in unbiased])}",)
    return backbone.requires_grad_(False).eval(), notes


def _empty_backbone(mapping: KeyMapping) -> Backbone:
    """On the meta device: shapes only, no memory, no random initialisation."""
    for part in ("n_classes", "branches", "projection_layers", "depth"):
        if mapping.config.get(part, 0) > _MOST_PARTS:
            raise mapping.state.refused(f"has {part}={mapping.config[part]}", _FIX)
    try:
        with torch.device("meta"):
            return ARCHITECTURES[mapping.architecture](**mapping.config)
    except FociError as error:
        raise mapping.state.refused(f"{error.where} {error.what}", error.fix) from error
