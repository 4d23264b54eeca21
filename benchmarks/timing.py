"""Ratios inside one run: these are what a benchmark may report."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any


def seconds(
    function: Callable[[], Any], repeats: int = 5, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Median wall time of a call, after one call to warm up."""
    function()
    times = []
    for _ in range(repeats):
        start = clock()
        function()
        times.append(clock() - start)
    return statistics.median(times)


def cpu_seconds(function: Callable[[], Any], repeats: int = 7) -> float:
    """Median processor time of a call, after one call to warm up."""
    return seconds(function, repeats, time.process_time)


def alternately(
    first: Callable[[], Any], second: Callable[[], Any], repeats: int = 5
) -> tuple[float, float]:
    """Median wall times of two calls taken in turns, so that a busy machine slows down both."""
    first(), second()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for function, own in zip((first, second), times, strict=True):
            start = time.perf_counter()
            function()
            own.append(time.perf_counter() - start)
    return statistics.median(times[0]), statistics.median(times[1])


def in_units(function: Callable[[], Any], unit: Callable[[], Any], repeats: int = 9) -> float:
    """Cost of a call in calls of ``unit``: the median over repeats, each with the unit around it.

    A busy machine slows down in phases; a unit measured right before and right after the call
    shares its phase.
    """
    unit()
    function()
    ratios = []
    for _ in range(repeats):
        times = []
        for call in (unit, unit, function, unit, unit):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        ratios.append(times[2] / statistics.mean(times[:2] + times[3:]))
    return statistics.median(ratios)
