"""SHA-256 of stored files and records, to notice what was changed since they were written.

This finds accidents: a file that was edited, cut off, or copied from another run. Whoever changes a
file on purpose can write the matching hash as well.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from foci.files.digest import digest, file_digest

OWN = "own_sha256"
"""Entry of a stored record that holds the hash of all its other entries."""

EDITED = f"copy the folder again; if you edited it on purpose, delete its entry {OWN}"
"""What to do about a model or selector folder whose record was changed."""


def changed_files(folder: Path, hashes: Mapping[str, str]) -> tuple[str, ...]:
    """Files of a folder that no longer have their hash, by their path in it.

    Args:
        folder: The folder.
        hashes: SHA-256 by path in the folder.

    Returns:
        ``"summary.json"`` for a file that was changed, ``"slides.csv (missing)"`` for one that is
        gone.
    """
    found = ((name, _changed(folder / name, known)) for name, known in hashes.items())
    return tuple(name + how for name, how in found if how is not None)


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
    """
    return OWN in record and record != with_own_hash(record)


def _changed(path: Path, known: str) -> str | None:
    if not path.is_file():
        return " (missing)"
    return None if file_digest(path) == known else ""
