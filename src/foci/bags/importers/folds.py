"""A folder of CLAM's splits: ``splits_0.csv``, ``splits_1.csv``, ... one per fold."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from foci.errors import CohortError

_FOLD = re.compile(r"splits_(\d+)\.csv")


@dataclass(frozen=True)
class ChosenSplits:
    """The split table to read.

    Attributes:
        path: The table; None where no splits were given.
        fold: The fold, where it is still to be found in the label table.
        notes: Which fold was taken, where nobody chose one.
    """

    path: Path | None
    fold: int | None
    notes: tuple[str, ...] = ()


def choose_splits(splits: str | Path | None, fold: int | None) -> ChosenSplits:
    """The split table of a fold: the file itself, or that fold's file of a folder.

    Raises:
        CohortError: If the folder holds no folds, or not this one.
    """
    if splits is None or not Path(splits).is_dir():
        return ChosenSplits(None if splits is None else Path(splits), fold)
    folder = Path(splits)
    files = folds_of(folder)
    chosen = min(files) if fold is None else fold
    if chosen not in files:
        known = ", ".join(map(str, sorted(files)))
        raise CohortError(
            folder, f"has no fold {chosen} (it has {known})", "choose one with --fold"
        )
    notes: tuple[str, ...] = ()
    if fold is None and len(files) > 1:
        notes = (f"fold {chosen} of {len(files)} is used; choose another with --fold",)
    return ChosenSplits(files[chosen], None, notes)


def folds_of(folder: Path) -> dict[int, Path]:
    """The split tables of a folder by fold, in order.

    Raises:
        CohortError: If the folder holds none.
    """
    found = {int(m[1]): p for p in folder.iterdir() if (m := _FOLD.fullmatch(p.name))}
    if not found:
        fix = "give the folder that holds them, or a split table"
        raise CohortError(folder, "holds no splits_0.csv, splits_1.csv, ...", fix)
    return dict(sorted(found.items()))
