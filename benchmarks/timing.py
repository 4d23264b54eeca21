"""Ratios inside one run: these are what a benchmark may report."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any


def seconds(function: Callable[[], Any], repeats: int = 5) -> float:
    """Median wall time of a call, after one call to warm up."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times)
