"""Read torch.save and safetensors files without executing what is pickled in them."""

from __future__ import annotations

import io
import struct
import sys
import zipfile
from pathlib import Path
from typing import IO, Any

import torch

from foci.backbones.checkpoints.unpickle import InertUnpickler, Storage
from foci.errors import CheckpointError

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
