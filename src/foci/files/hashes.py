"""Format number and SHA-256 of stored records and files, to notice what is not as it was written.

The hashes find accidents: a file that was edited, cut off, or copied from another run. Whoever
changes a file on purpose can write the matching hash as well.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from operator import ne
from pathlib import Path
from typing import Any

from foci.errors import ChangedError, FociError
from foci.files.atomic import write_whole

OWN = "own_sha256"
"""Entry of a stored record that holds the hash of all its other entries."""

EDITED = f"copy the folder again; if you edited it on purpose, delete its entry {OWN}"
"""What to do about a model or selector folder whose record was changed."""


def digest(content: Any) -> str:
    """SHA-256 of plain values, whatever the order of their keys.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_format(
    path: Path,
    record: Mapping[str, Any],
    known: int,
    again: str,
    error: type[FociError] = FociError,
) -> None:
    """Refuse a record whose entry ``format`` is another number than ``known``, or none.

    ``again`` says what makes a new one.

    >>> check_format(Path("backbone.json"), {"format": 2}, 1, "train again")
    Traceback (most recent call last):
    foci.errors.FociError: backbone.json: is of format 2, this FOCI reads format 1; train again, ...
    """
    found = record.get("format")
    if type(found) is not int:  # neither "1" nor true
        what = "has no format number"
    elif found != known:
        what = f"is of format {found}"
    else:
        return
    fix = f"{again}, or use the FOCI that wrote it"
    raise error(path, f"{what}, this FOCI reads format {known}", fix)


def changed_files(folder: Path, hashes: Mapping[str, str]) -> tuple[str, ...]:
    """Files of a folder that no longer have the SHA-256 they had, by their path in it.

    Returns:
        ``"summary.json"`` for a file that was changed, ``"slides.csv (missing)"`` for one that is
        gone.
    """
    changed = []
    for name, known in hashes.items():
        if not (folder / name).is_file():
            changed.append(f"{name} (missing)")
        elif file_digest(folder / name) != known:
            changed.append(name)
    return tuple(changed)


def with_own_hash(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record with the hash of its other entries, as it will be read back from JSON.

    >>> with_own_hash({"classes": ("a", "b")})["own_sha256"][:8]
    '0d7582e4'
    """
    plain = json.loads(json.dumps({k: v for k, v in record.items() if k != OWN}))
    return {**plain, OWN: digest(plain)}


def was_changed(record: Mapping[str, Any]) -> bool:
    """Whether a record that was read no longer has its own hash; one without a hash has not.

    >>> record = with_own_hash({"auc": 1.0})
    >>> was_changed(record), was_changed({**record, "auc": 0.123}), was_changed({"auc": 0.123})
    (False, True, False)
    >>> was_changed({"auc": 1.0, "own_sha252": record["own_sha256"]})  # one bit of its name
    True
    """
    one_off = (len(name) == len(OWN) and sum(map(ne, name, OWN)) == 1 for name in record)
    return any(one_off) or (OWN in record and record != with_own_hash(record))


def write_sealed(path: Path, content: bytes) -> None:
    """Write a file whole, with the SHA-256 of its content as its last 32 bytes."""
    write_whole(path, content + hashlib.sha256(content).digest())


def read_sealed(path: Path) -> bytes:
    """The content of a sealed file.

    Raises:
        ValueError: If a single bit of it is not as it was written.
    """
    stored = path.read_bytes()
    if hashlib.sha256(stored[:-32]).digest() != stored[-32:]:
        raise ValueError("it is not as it was written")
    return stored[:-32]


def stamp(path: Path) -> list[Any]:
    """``[name, bytes, nanoseconds]`` of a file; a missing one has only its name.

    The folder is left out: a file that was moved, with its time, is the same file.
    """
    try:
        facts = path.stat()
    except OSError:
        return [path.name, None, None]
    return [path.name, facts.st_size, facts.st_mtime_ns]


class Unchanged:
    """Files that must stay as they are while a run reads them; their stamps are taken at once.

    A file that is replaced by one of the same size and time of change is not noticed.
    """

    def __init__(self, files: Iterable[Path]) -> None:
        self._stamps = {path: stamp(path) for path in files}

    def check(self, during: str) -> None:
        """Raise an error if a file was changed, replaced or removed during ``"the audit"``."""
        changed = [path for path, before in self._stamps.items() if stamp(path) != before]
        if changed:
            more = f" (and {len(changed) - 1} more)" if len(changed) > 1 else ""
            what = f"was changed during {during}{more}"
            raise ChangedError(changed[0], what, "leave it alone and start again")
