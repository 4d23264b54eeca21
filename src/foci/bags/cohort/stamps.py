"""Identify feature files by name, size and modification time, without reading them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from foci.bags.cohort.cohort import Cohort
from foci.files.stamps import stamp


def stamps(cohort: Cohort) -> list[list[list[Any]]]:
    """``[name, bytes, nanoseconds]`` of every file that a slide's bag depends on, by slide.

    The folder is left out: features that were moved, with their times, are the same features. A
    missing file has only its name.
    """
    return [[stamp(file) for file in own] for own in _files(cohort)]


def files_read(cohort: Cohort) -> list[Path]:
    """Every file that the bags of a cohort depend on."""
    return [file for own in _files(cohort) for file in own]


def what_is_read(cohort: Cohort) -> list[Any]:
    """Everything that the bags and labels of a cohort depend on, for the key of a run."""
    store = cohort.store
    rows = [[slide.slide_id, slide.label] for slide in cohort]
    return [rows, stamps(cohort), cohort.classes, store.n_cap, store.layout, store.mpp]


def _files(cohort: Cohort) -> list[list[Path]]:
    store = cohort.store
    return [
        [] if path is None else [path, *store.read_beside(path)]
        for path in (slide.feature_path for slide in cohort)
    ]
