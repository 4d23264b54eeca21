"""Peak memory of a call, from the kernel's own books (Linux)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

_STATUS, _REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peak_mb(function: Callable[[], Any]) -> float:
    """How far the resident memory rises above where it was, in MiB; NaN where it cannot be read."""
    if not _REFS.exists():
        return float("nan")
    _REFS.write_text("5")  # resets the high-water mark
    before = _read("VmRSS")
    function()
    return max(0.0, _read("VmHWM") - before)


def _read(field: str) -> float:
    found = re.search(rf"{field}:\s+(\d+) kB", _STATUS.read_text())
    return float(found.group(1)) / 1024 if found else float("nan")
