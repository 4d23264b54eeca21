"""Peak memory of a call: on a GPU from torch's books, on a CPU from the kernel's (Linux)."""

from __future__ import annotations

import contextlib
import ctypes
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

_STATUS, _REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_MB = 1024**2


def peak_mb(function: Callable[[], Any], device: str = "cpu") -> float:
    """How far a call lifts the memory in use, in MiB; NaN where that cannot be read.

    Args:
        function: The call.
        device: ``"cpu"`` counts resident memory above where it was; a GPU all that is allocated,
            the model included, as the paper does.
    """
    if device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats(device)
        function()
        return float(torch.cuda.max_memory_allocated(device)) / _MB
    with contextlib.suppress(OSError):
        _give_back()
        _REFS.write_text("5")  # resets the high-water mark
        before = _resident("VmRSS")
        function()
        return max(0.0, _resident("VmHWM") - before)
    function()
    return float("nan")


def _give_back() -> None:
    """Return freed memory to the kernel; a call that found enough of it would seem to need none."""
    with contextlib.suppress(OSError, AttributeError):  # a C library without it
        ctypes.CDLL(None).malloc_trim(0)


def _resident(field: str) -> float:
    found = re.search(rf"{field}:\s+(\d+) kB", _STATUS.read_text())
    return float(found.group(1)) / 1024 if found else float("nan")
