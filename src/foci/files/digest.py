"""Hash of plain values and of files, to recognise a run by what it depends on."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any


def digest(content: Any) -> str:
    """SHA-256 of plain values, whatever the order of their keys.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 of a file's content."""
    sha = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(2**20):
            sha.update(chunk)
    return sha.hexdigest()
