"""Read a checkpoint file without executing what is pickled in it, and find its state dict.

Files of ``torch.save``, old and new, and of safetensors become nested dictionaries; the state dict
is taken out of whatever a training script wrapped around it, and wrapper prefixes are stripped
from its keys. Hyper-parameters of Lightning and the ``config.json`` of a Hugging Face folder say
what a model is for; they are read as a :class:`Description`.
"""

from __future__ import annotations

import io
import re
import struct
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

from foci.backbones.checkpoints.formats import SEPARATE_PARTS, unsupported
from foci.backbones.checkpoints.formats.base import StateDict, listed
from foci.backbones.checkpoints.unpickle import (
    MOST_KEYS,
    InertUnpickler,
    Storage,
    StoredTensor,
    Stub,
)
from foci.errors import CheckpointError
from foci.files.bounds import check_regular, read_json, read_text

_MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
"""First number in a file that ``torch.save`` wrote before version 1.6."""

_ENTRIES = ("state_dict", "model_state_dict", "model_state", "model", "net", "weights", "ema")
"""Keys under which training scripts keep the state dict, beside the optimizer and the like."""

_SETTINGS = ("hyper_parameters", "hparams", "args", "config")
"""Keys under which Lightning and training scripts keep what the model was made with."""

_LONGEST_HEADER = 16 * 1024**2
"""Bytes of a safetensors header: names and shapes."""

_DEPTH = 8
"""Most levels of nesting; a hostile file may contain itself."""

_SHARED, _FEW = 4, 2**20
"""Tied weights share a storage; this many times over, and small ones, they may."""

_PREFIXES = ("module.", "model.", "net.", "network.", "mil.", "_orig_mod.")
"""Put before *every* name by DataParallel, Lightning or MIL-Lab, and ``torch.compile``."""

_LOSSES = ("loss.", "loss_fn.", "criterion.")
"""Prefixes of what a Lightning module may keep beside its model."""

_METRICS = re.compile(
    r"(^|_)(train|training|val|valid|validation|test)(_|$)"
    r"|metric|accuracy|(^|_)acc($|_)|auroc|(^|_)auc($|_)|f1|precision|recall|confmat|kappa",
    re.IGNORECASE,
)
"""Attributes of a Lightning module that are metrics; theirs are buffers, not parameters."""


def read_content(path: Path) -> Any:
    """Read a ``torch.save`` file, old or new, or a safetensors file, as nested dictionaries.

    The bytes decide what the file is, not its suffix.
    """
    try:
        check_regular(path)
        with path.open("rb") as file:
            head = file.read(9)
            file.seek(0)
            if not head:
                raise CheckpointError(path, "is empty", "copy it again")
            if head.startswith(b"PK\x03\x04"):
                return _read_zip(path, file)
            if head[8:] == b"{":
                from safetensors.torch import load_file

                _check_names(file)
                return load_file(path)
            if head.startswith(b"\x80"):
                return _read_legacy(path, file)
        fix = "give a file written by torch.save or safetensors"
        raise CheckpointError(path, "is not a checkpoint", fix)
    except CheckpointError:
        raise
    except FileNotFoundError:
        raise CheckpointError(path, "does not exist", "check the path") from None
    except Exception as error:  # a damaged or hostile file may fail anywhere
        what = f"cannot be read as a checkpoint ({str(error) or type(error).__name__})"
        raise CheckpointError(path, what, "copy or save it again") from error


def _check_names(file: IO[bytes]) -> None:
    """Refuse a safetensors file that names far more tensors than any classifier has."""
    (length,) = struct.unpack("<Q", file.read(8))
    if length > _LONGEST_HEADER or file.read(length).count(b"data_offsets") > MOST_KEYS:
        raise ValueError(f"more than {MOST_KEYS} names")


def _read_zip(path: Path, file: IO[bytes]) -> Any:
    with zipfile.ZipFile(file) as archive:
        names = archive.namelist()
        if any(name.endswith("constants.pkl") for name in names):
            what = "is a TorchScript program, which FOCI does not run"
            raise CheckpointError(path, what, "save its state_dict()")
        roots = [name.removesuffix("data.pkl") for name in names if name.endswith("/data.pkl")]
        if len(roots) != 1:
            what = "is a ZIP archive, but not one of torch.save"
            raise CheckpointError(path, what, "give the checkpoint itself")
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


def _read_legacy(path: Path, file: IO[bytes]) -> Any:
    if InertUnpickler(file).load() != _MAGIC_NUMBER:
        what = "is a pickle, but not one of torch.save"
        raise CheckpointError(path, what, "save the state dict with torch.save")
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


def state_dict_of(content: Any, path: Path) -> StateDict:
    """Extract the classifier's state dict, with plain keys, from a file's content."""
    content, notes, entries = _innermost(content, path)
    tensors = _tensors(content, path)
    if others := [key for key in content if key not in tensors]:
        notes.append(f"not tensors, left out: {listed(others)}")
    if losses := [key for key in tensors if key.startswith(_LOSSES)]:
        notes.append(f"part of the loss, left out: {listed(losses)}")
    tensors = {key: tensor for key, tensor in tensors.items() if key not in losses}
    if metrics := _metrics(tensors):
        notes.append(f"metrics, left out: {listed(metrics)}")
    tensors = {key: tensor for key, tensor in tensors.items() if key not in metrics}
    while shared := [p for p in _PREFIXES if tensors and all(k.startswith(p) for k in tensors)]:
        tensors = {key.removeprefix(shared[0]): tensor for key, tensor in tensors.items()}
    # CLAM puts its attention net alone into DataParallel. Only directly after attention_net.: the
    # ungated net has a module of its own further in.
    data_parallel = re.compile(r"^attention_net\.module\.")
    tensors = {data_parallel.sub("attention_net.", key): one for key, one in tensors.items()}
    return StateDict(path, tensors, tuple(notes), entries)


def _innermost(content: Any, path: Path) -> tuple[Any, list[str], dict[str, Any]]:
    """The dictionary under all entries that training scripts use, notes, and what is around it."""
    notes: list[str] = []
    entries: dict[str, Any] = {}
    for _ in range(_DEPTH + 1):
        present = [key for key in _ENTRIES if key in content] if isinstance(content, dict) else []
        entry = next((key for key in present if isinstance(content[key], dict | Stub)), None)
        if entry is None:
            return content, notes, entries
        entries |= {
            key: value if key in _SETTINGS else None
            for key, value in content.items()
            if isinstance(key, str)
        }
        if "teacher" in content and content["teacher"] is not None:
            notes.append("the file holds a teacher too; the student ('model') is read")
        elif "ema" in content and entry != "ema":
            notes.append(f"the file holds averaged weights ('ema') too; {entry!r} is read")
        content = content[entry]
    what = f"holds a state dict more than {_DEPTH} entries deep"
    raise CheckpointError(path, what, "save model.state_dict()")


def _tensors(content: Any, path: Path) -> dict[str, Tensor]:
    """The tensors of a dictionary, read from their storages."""
    if isinstance(content, Stub):
        name = f"{type(content).__module__}.{type(content).__name__}"
        what = f"holds a pickled object ({name}), which FOCI does not execute"
        raise CheckpointError(path, what, "save model.state_dict() instead of the model")
    if not isinstance(content, dict):
        kind = "a single tensor" if isinstance(content, StoredTensor) else type(content).__name__
        fix = "give the classifier's weights, not features"
        raise CheckpointError(path, f"holds {kind}, not a state dict", fix)
    named = {key: value for key, value in content.items() if isinstance(key, str)}
    _check_sharing([one for one in named.values() if isinstance(one, StoredTensor)], path)
    tensors: dict[str, Tensor] = {}
    for key, value in named.items():
        try:
            if isinstance(value, StoredTensor):
                tensors[key] = value.read()
            elif isinstance(value, Tensor):
                tensors[key] = value
        except (RuntimeError, TypeError, ValueError, OverflowError) as error:
            what = f"{listed([key])} cannot be read ({error})"
            raise CheckpointError(path, what, "save it again") from error
    if not tensors:
        if content.keys() >= SEPARATE_PARTS:
            raise CheckpointError(path, *unsupported("DTFD-MIL"))
        what = f"holds no state dict; its entries are {listed(list(content))}"
        raise CheckpointError(path, what, "save model.state_dict()")
    return tensors


def _check_sharing(tensors: list[StoredTensor], path: Path) -> None:
    """Refuse many tensors that share a few numbers: each would become a copy."""
    storages = {id(one.storage): one.storage.numel for one in tensors}
    available = sum(storages.values())
    try:
        wanted = sum(one.numel for one in tensors if len(one.size) <= _DEPTH)
    except TypeError:
        return  # reading such a tensor says what is wrong with it
    if wanted > _SHARED * available + _FEW:
        what = f"holds tensors of {wanted} numbers that share {available}"
        raise CheckpointError(path, what, "save model.state_dict() of the classifier itself")


def _metrics(tensors: dict[str, Tensor]) -> list[str]:
    """Buffers of metrics beside a model whose own names all have a wrapper's prefix."""
    beside = [key for key in tensors if not key.startswith(_PREFIXES)]
    if len(beside) == len(tensors):
        return []
    buffers = [key for key in beside if not key.endswith((".weight", ".bias"))]
    return [key for key in buffers if _METRICS.search(key.partition(".")[0])]


CONFIG = "config.json"
HF_WEIGHTS = ("model.safetensors", "pytorch_model.bin")


def hugging_face_files(folder: Path) -> tuple[Path, Path] | None:
    """The ``config.json`` and the weights of a Hugging Face folder; None if it is none.

    ``folder`` is one that ``save_pretrained`` wrote, a snapshot, or the ``models--OWNER--NAME`` of
    the local cache, whose newest snapshot is taken. Nothing is downloaded.
    """
    if (folder / "snapshots").is_dir():
        try:
            newest = read_text(folder / "refs" / "main").strip()
        except (OSError, ValueError):
            newest = ""
        if not re.fullmatch(r"[0-9a-f]{7,64}", newest):
            fix = "give the folder below snapshots that holds config.json"
            raise CheckpointError(folder, "does not say which snapshot is the newest", fix)
        folder = folder / "snapshots" / newest
    if not (folder / CONFIG).is_file():
        return None
    weights = [folder / name for name in HF_WEIGHTS if (folder / name).is_file()]
    if not weights:
        fix = f"download {HF_WEIGHTS[0]} too; weights in several parts are not read"
        raise CheckpointError(folder, f"holds {CONFIG} and no {' or '.join(HF_WEIGHTS)}", fix)
    return folder / CONFIG, weights[0]


@dataclass(frozen=True)
class Description:
    """What a checkpoint says of its model beside the tensors; None or empty where it does not.

    Attributes:
        architecture: What the model is called.
        task: ``"classification"``, ``"regression"``, ...
        classes: Names in the order of the outputs.
        encoder: Tile encoder of the features.
        level: What one feature vector is of, ``"tile"``, ``"slide"`` or ``"patient"``.
        d_in: Feature width.
        n_classes: Number of outputs.
        options: Settings that the tensors do not show, by the names of FOCI's options.
    """

    architecture: str | None = None
    task: str | None = None
    classes: tuple[str, ...] = ()
    encoder: str | None = None
    level: str | None = None
    d_in: int | None = None
    n_classes: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


_NAMES = {
    "architecture": ("model_type", "architecture", "model_name"),
    "task": ("task",),
    "encoder": ("encoder", "encoder_name", "patch_encoder", "feature_extractor", "extractor"),
    "level": ("supported_features", "feature_level"),
    "d_in": ("dim_input", "in_dim", "input_dim", "d_in"),
    "n_classes": ("num_classes", "n_classes"),
    "heads": ("num_heads", "n_heads", "heads"),
    "landmarks": ("n_landmarks", "num_landmarks", "landmarks"),
}
"""Names that projects use for one thing."""


def describe(state: StateDict, config: Path | None = None) -> Description:
    """What the settings around a state dict, and a ``config.json``, say of it."""
    settings: dict[str, Any] = {}
    for key in _SETTINGS:
        if isinstance(own := state.entries.get(key), dict):
            settings |= {name: value for name, value in own.items() if isinstance(name, str)}
    if config is not None:
        try:
            content = read_json(config)
        except ValueError as error:
            raise CheckpointError(config, f"is not JSON ({error})", "download it again") from error
        settings |= content if isinstance(content, dict) else {}

    def setting(name: str, kind: type) -> Any:
        values = (settings.get(theirs) for theirs in _NAMES[name])
        return next((value for value in values if type(value) is kind), None)

    called = settings.get("architectures")
    called = called[0] if isinstance(called, list) and called else settings.get("model_class")
    if isinstance(called, type):  # a stand-in for the class that Lightning pickled by its name
        called = called.__name__
    if not isinstance(called, str):
        called = setting("architecture", str)
    numbers = {name: setting(name, int) for name in ("heads", "landmarks")}
    return Description(
        architecture=called,
        task=setting("task", str),
        classes=_class_names(settings),
        encoder=setting("encoder", str),
        level=setting("level", str),
        d_in=setting("d_in", int),
        n_classes=setting("n_classes", int),
        options={name: value for name, value in numbers.items() if value is not None},
    )


def _class_names(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Of ``categories``, ``classes``, ``class_names`` or Hugging Face's ``id2label``."""
    named = settings.get("id2label")
    if isinstance(named, dict) and set(map(str, named)) == {str(c) for c in range(len(named))}:
        ordered: Any = [value for _, value in sorted(named.items(), key=lambda one: int(one[0]))]
        if not all(str(value).startswith("LABEL_") for value in ordered):  # what it is by default
            return tuple(str(value) for value in ordered)
    for key in ("categories", "classes", "class_names"):
        names = settings.get(key)
        if isinstance(names, list | tuple) and all(isinstance(one, str) for one in names):
            return tuple(names)
    return ()
