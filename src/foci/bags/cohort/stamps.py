"""Feature files as they are known without being read: by name, size and time of change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from foci.bags.cohort.cohort import Cohort


def stamps(cohort: Cohort) -> list[list[list[Any]]]:
    """``[name, bytes, nanoseconds]`` of every file that a slide's bag depends on, by slide.

    The folder is not part of it: features that were moved, times and all, are the same features.
    A file that is missing is known by its name alone.
    """
    store = cohort.store
    files = [
        [] if path is None else [path, *store.read_beside(path)]
        for path in (slide.feature_path for slide in cohort)
    ]
    return [[_stamp(file) for file in own] for own in files]


def what_is_read(cohort: Cohort) -> list[Any]:
    """All that decides which bags and labels a cohort gives: slides, files, classes, settings."""
    store = cohort.store
    rows = [[slide.slide_id, slide.label] for slide in cohort]
    return [rows, stamps(cohort), cohort.classes, store.n_cap, store.layout, store.mpp]


def _stamp(path: Path) -> list[Any]:
    try:
        facts = path.stat()
    except OSError:
        return [path.name, None, None]
    return [path.name, facts.st_size, facts.st_mtime_ns]
