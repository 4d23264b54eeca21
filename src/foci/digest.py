"""One short name for what a run depends on."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def digest(content: Any) -> str:
    """SHA-256 of plain values.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()
