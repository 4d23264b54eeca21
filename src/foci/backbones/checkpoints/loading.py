"""Load a checkpoint file or folder as a frozen backbone."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foci.backbones.base import Backbone
from foci.backbones.checkpoints.assign import empty_backbone, ignored_keys, match_tensors
from foci.backbones.checkpoints.containers import state_dict_of
from foci.backbones.checkpoints.files import read_content
from foci.backbones.checkpoints.formats import complete_options, recognise
from foci.backbones.checkpoints.formats.base import CheckpointFormat, Option
from foci.backbones.checkpoints.state_dict import StateDict
from foci.backbones.registry import ARCHITECTURES, PRESETS
from foci.backbones.saved import FACTS, WEIGHTS, ModelRecord, load_folder, read_record
from foci.errors import CheckpointError

_LOG = logging.getLogger("foci")


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
    record: ModelRecord | None = None


@dataclass(frozen=True)
class LoadedCheckpoint:
    """A checkpoint's backbone with the facts of the same read.

    Attributes:
        backbone: Frozen and in ``eval`` mode.
        facts: What the checkpoint is, and what was assumed about it.
    """

    backbone: Backbone
    facts: CheckpointFacts


def inspect(path: str | Path, **options: Any) -> CheckpointFacts:
    """Describe a checkpoint; refuses what :func:`load` refuses.

    Args:
        path: As for :func:`load`.
        **options: As for :func:`load`.
    """
    return open_checkpoint(path, **options).facts


def load(
    path: str | Path, *, expect: str | None = None, d_in: int | None = None, **options: Any
) -> Backbone:
    """Load a checkpoint's backbone, frozen and in ``eval`` mode.

    Args:
        path: A folder that FOCI wrote (or its ``weights.safetensors``), or a file of another
            project: ``.pt``, ``.pth``, ``.ckpt``, ``.bin`` or ``.safetensors``. Objects pickled
            into it are never executed.
        expect: Refuse another architecture (``"clam-sb"``) or classifier (``"transmil"``).
        d_in: Refuse another feature width.
        **options: What the tensors do not show (``heads``, ``aligned``, ``landmarks``,
            ``activation``, ...). What is assumed without them is logged as a warning (logger
            ``foci``) and kept in the backbone's ``notes``.
    """
    loaded = open_checkpoint(path, **options)
    _check(loaded.facts, expect, d_in)
    for note in loaded.facts.notes:
        _LOG.warning("%s: %s", loaded.facts.path, note)
    return loaded.backbone


def open_checkpoint(path: str | Path, **options: Any) -> LoadedCheckpoint:
    """Read a checkpoint once, for its backbone and its facts.

    Args:
        path: As for :func:`load`.
        **options: As for :func:`load`.
    """
    return OpenCheckpoint(path).load(**options)


class OpenCheckpoint:
    """A checkpoint that is read once and may be loaded with several options.

    Attributes:
        path: The file, or the folder.
        options: Settings that a file of its format leaves open, by name.
        record: What a folder of FOCI says of its training; None for any other file.

    Args:
        path: As for :func:`load`.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._folder = _folder(self.path)
        self.options: Mapping[str, Option] = {}
        self.record: ModelRecord | None = None
        if self._folder is not None:
            self.record = read_record(self._folder)
        else:
            self._state = state_dict_of(read_content(self.path), self.path)
            self._format = recognise(self._state)
            self.options = self._format.options

    def load(self, **options: Any) -> LoadedCheckpoint:
        """The backbone with these options, and its facts."""
        if self._folder is not None and self.record is not None:
            return _own(self._folder, self.record, options)
        return _foreign(self._state, self._format, options)


def _folder(path: Path) -> Path | None:
    if path.is_dir():
        return path
    described = path.name in (WEIGHTS, FACTS) and (path.parent / FACTS).is_file()
    return path.parent if described else None


def _own(folder: Path, record: ModelRecord, options: Mapping[str, Any]) -> LoadedCheckpoint:
    if options:
        raise CheckpointError(
            folder, f"has no option {min(options)!r}", "backbone.json already says everything"
        )
    return _described(load_folder(folder, record), path=folder, format="FOCI", record=record)


def _foreign(
    state: StateDict, format_: CheckpointFormat, options: Mapping[str, Any]
) -> LoadedCheckpoint:
    values, assumed = complete_options(format_, options, state)
    mapping = format_.read(state, values)
    backbone = empty_backbone(mapping)
    tensors, notes = match_tensors(mapping, backbone, format_.name)
    backbone.load_state_dict(tensors, assign=True)
    return _described(
        backbone.requires_grad_(False).eval(),
        path=state.path,
        format=format_.name,
        notes=(*state.notes, *assumed, *mapping.notes, *notes),
        ignored=ignored_keys(mapping),
    )


def _described(backbone: Backbone, **facts: Any) -> LoadedCheckpoint:
    backbone.notes = facts.get("notes", ())
    described = CheckpointFacts(
        architecture=backbone.architecture,
        config=backbone.config,
        parameters=sum(p.numel() for p in backbone.parameters()),
        **facts,
    )
    return LoadedCheckpoint(backbone, described)


def _check(facts: CheckpointFacts, expect: str | None, d_in: int | None) -> None:
    what = f"{facts.format} ({facts.architecture}) for features of width {facts.config['d_in']}"
    if expect is not None and facts.architecture not in _architectures(expect):
        raise CheckpointError(facts.path, f"is {what}, not {expect}", "give another checkpoint")
    if d_in is not None and facts.config["d_in"] != d_in:
        raise CheckpointError(
            facts.path, f"is {what}, not {d_in}", "give features of the encoder it was trained on"
        )


def _architectures(name: str) -> set[str]:
    """Architectures of a classifier with all its presets, or the one that is named itself."""
    if name in ARCHITECTURES and name not in PRESETS:
        return {name}
    return {preset.architecture.architecture for preset in PRESETS[name].values()}
