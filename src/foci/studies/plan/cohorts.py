"""Cohorts of a study: each entry of ``study.yaml``, or each of its folds, is one cohort to read."""

from __future__ import annotations

from pathlib import Path

from foci.bags import Cohort
from foci.bags.cohort.stamps import stamps
from foci.bags.importers.folds import folds_of
from foci.errors import FociError
from foci.files.digest import digest
from foci.studies.plan.blocks import CohortEntry


def folds(entry: CohortEntry) -> tuple[int | None, ...]:
    """The folds of a cohort: those that were asked for, or all of a ``splits/`` folder.

    ``(None,)`` for a cohort without folds, and where one fold was chosen with ``fold``.
    """
    several = entry.splits is not None and Path(entry.splits).is_dir() and entry.fold is None
    if not several or entry.splits is None:
        if entry.folds is not None:
            what, fix = "needs a folder of splits", "give it as splits, without fold"
            raise FociError("folds", what, fix)
        return (None,)
    known = tuple(folds_of(entry.splits))
    chosen = known if entry.folds is None or entry.folds == "all" else entry.folds
    missing = [fold for fold in chosen if fold not in known]
    if missing:
        what = f"has no fold {missing[0]} (it has {', '.join(map(str, known))})"
        raise FociError(entry.splits, what, "choose others with folds")
    return chosen if len(known) > 1 else (None,)


def read_cohort(entry: CohortEntry, fold: int | None, n_cap: int) -> Cohort:
    """Read the table of a cohort, or of one of its folds; no feature file is read."""
    chosen = entry if fold is None else entry.model_copy(update={"fold": fold})
    return chosen.read(n_cap=n_cap)


def data_digest(cohort: Cohort, split_seed: int) -> str:
    """Digest of a cohort's rows, and of its feature files by name, size and time of change.

    Tile cap and classes are left out: cells and models name their own.
    """
    store = cohort.store
    rows = [[s.slide_id, s.case_id, s.label, s.split] for s in cohort]
    skipped = [[s.slide_id, s.reason] for s in cohort.skipped]
    return digest([rows, skipped, stamps(cohort), store.layout, store.mpp, split_seed])
