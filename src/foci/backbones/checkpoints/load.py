"""Match a file's tensors to a backbone's state dict, strictly: none missing, none left over."""

from __future__ import annotations

import io
import logging
import struct
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

from foci.backbones.base import Backbone
from foci.backbones.checkpoints.containers import state_dict_of
from foci.backbones.checkpoints.formats import complete_options, recognise
from foci.backbones.checkpoints.formats.base import CheckpointFormat, KeyMapping, Option
from foci.backbones.checkpoints.state_dict import StateDict, listed
from foci.backbones.checkpoints.unpickle import InertUnpickler, Storage
from foci.backbones.registry import ARCHITECTURES, PRESETS
from foci.backbones.saved import RECORD, WEIGHTS, ModelRecord, load_folder, read_record
from foci.errors import CheckpointError, FociError

_FIX = "give weights of an unmodified model, or wrap it in foci.backbones.CallableBackbone"

_MOST_PARTS = 4096
"""Most classes, branches or layers; each is a module of its own."""


def empty_backbone(mapping: KeyMapping) -> Backbone:
    """Build the backbone on the meta device: shapes only, no memory, no random initialisation."""
    for part in ("n_classes", "branches", "projection_layers"):
        if mapping.config.get(part, 0) > _MOST_PARTS:
            raise mapping.state.refused(f"has {part}={mapping.config[part]}", _FIX)
    try:
        with torch.device("meta"):
            return ARCHITECTURES[mapping.architecture](**mapping.config)
    except FociError as error:
        raise mapping.state.refused(f"{error.where} {error.what}", error.fix) from error


def match_tensors(
    mapping: KeyMapping, backbone: Backbone, format_name: str
) -> tuple[dict[str, Tensor], tuple[str, ...]]:
    """State dict in float32 under the backbone's own keys, and a note on any other precision.

    Refused, by the file's keys: a tensor that is missing, one of another shape, one that is not
    finite, and one that the backbone has no place for.
    """
    state = mapping.state
    if backbone.n_classes < 2:
        raise state.refused(
            f"is {format_name} with {backbone.n_classes} class", "two are the least"
        )
    places = {name: mapping.name_of(name) for name in backbone.state_dict()}
    if missing := [theirs for theirs in places.values() if theirs not in state]:
        raise state.refused(f"is {format_name}, but lacks {listed(missing)}", _FIX)
    used = set(places.values())
    if extra := [key for key in state if key not in used and not mapping.ignores(key)]:
        raise state.refused(f"is {format_name}, but holds also {listed(extra)}", _FIX)
    tensors = {}
    for name, place in backbone.state_dict().items():
        theirs, tensor = places[name], state[places[name]]
        if tensor.shape != place.shape:
            shapes = f"{list(tensor.shape)}, which does not fit {list(place.shape)}"
            raise state.refused(f"is {format_name}, but {theirs} has shape {shapes}", _FIX)
        tensors[name] = tensor.to(torch.float32)
        if not bool(torch.isfinite(tensors[name]).all()):
            raise state.refused(f"{theirs} holds NaN or Inf", "take an earlier checkpoint")
    stored = {str(state[key].dtype).removeprefix("torch.") for key in used} - {"float32"}
    notes = (f"stored as {' and '.join(sorted(stored))}, used as float32",) if stored else ()
    return tensors, notes


def ignored_keys(mapping: KeyMapping) -> tuple[str, ...]:
    """Keys of the tensors that play no part in a prediction."""
    return tuple(key for key in mapping.state if mapping.ignores(key))


# Read torch.save and safetensors files without executing what is pickled in them.


_MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
"""First number in a file that ``torch.save`` wrote before version 1.6."""


def read_content(path: Path) -> Any:
    """Read a ``torch.save`` file, old or new, or a safetensors file, as nested dictionaries.

    The bytes decide what the file is, not its suffix.
    """
    try:
        with path.open("rb") as file:
            return _content(path, file)
    except CheckpointError:
        raise
    except FileNotFoundError:
        raise CheckpointError(path, "does not exist", "check the path") from None
    except Exception as error:  # a damaged or hostile file may fail anywhere
        said = str(error) or type(error).__name__
        raise CheckpointError(
            path, f"cannot be read as a checkpoint ({said})", "copy or save it again"
        ) from error


def _content(path: Path, file: IO[bytes]) -> Any:
    head = file.read(9)
    file.seek(0)
    if not head:
        raise CheckpointError(path, "is empty", "copy it again")
    if head.startswith(b"PK\x03\x04"):
        return _zipped(path, file)
    if head[8:] == b"{":
        from safetensors.torch import load_file

        return load_file(path)
    if head.startswith(b"\x80"):
        return _legacy(path, file)
    raise CheckpointError(
        path, "is not a checkpoint", "give a file written by torch.save or safetensors"
    )


def _zipped(path: Path, file: IO[bytes]) -> Any:
    with zipfile.ZipFile(file) as archive:
        names = archive.namelist()
        if any(name.endswith("constants.pkl") for name in names):
            raise CheckpointError(
                path, "is a TorchScript program, which FOCI does not run", "save its state_dict()"
            )
        roots = [name.removesuffix("data.pkl") for name in names if name.endswith("/data.pkl")]
        if len(roots) != 1:
            raise CheckpointError(
                path, "is a ZIP archive, but not one of torch.save", "give the checkpoint itself"
            )
        root, storages, left = roots[0], dict[str, Storage](), path.stat().st_size

        def record(name: str) -> bytes:
            nonlocal left
            entry = archive.getinfo(root + name)
            if entry.compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"{name} is compressed")
            left -= entry.file_size
            if left < 0:
                raise ValueError("its parts are larger than the file")
            return archive.read(root + name)

        def storage(dtype: torch.dtype, key: str, numel: int) -> Storage:
            if key not in storages:
                storages[key] = Storage(dtype, numel)
                storages[key].fill(record(f"data/{key}"))
            return storages[key]

        if f"{root}byteorder" in names and record("byteorder") != sys.byteorder.encode():
            raise ValueError("its byte order is not this machine's")
        return InertUnpickler(io.BytesIO(record("data.pkl")), storage).load()


def _legacy(path: Path, file: IO[bytes]) -> Any:
    if InertUnpickler(file).load() != _MAGIC_NUMBER:
        raise CheckpointError(
            path, "is a pickle, but not one of torch.save", "save the state dict with torch.save"
        )
    InertUnpickler(file).load()  # version of the format
    system = InertUnpickler(file).load()
    if system["little_endian"] is not (sys.byteorder == "little"):
        raise ValueError("its byte order is not this machine's")
    size = path.stat().st_size
    storages: dict[str, Storage] = {}

    def storage(dtype: torch.dtype, key: str, numel: int) -> Storage:
        found = storages.setdefault(key, Storage(dtype, numel))
        if found.n_bytes > size:
            raise ValueError("a storage larger than the file")
        return found

    content = InertUnpickler(file, storage).load()
    for key in InertUnpickler(file).load():  # the numbers follow in this order
        (numel,) = struct.unpack("=q", file.read(8))
        if numel != storages[key].numel:
            raise ValueError("a storage of another length than announced")
        storages[key].fill(file.read(storages[key].n_bytes))
    return content


# Load a checkpoint file or folder as a frozen backbone.


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
    described = path.name in (WEIGHTS, RECORD) and (path.parent / RECORD).is_file()
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
