"""Hash of plain values, to recognise a run by what it depends on."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def digest(content: Any) -> str:
    """SHA-256 of plain values, whatever the order of their keys.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()
