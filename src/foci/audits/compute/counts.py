"""Which counts of tiles are revealed and deleted on a slide.

The rule: a classifier with a closed form gives every count for next to nothing, and gets every
count. For any other one counts are spent where they change an answer, see
:mod:`foci.audits.compute.adaptive_counts`. Of the random orders, the first ``DELETED_ORDERS`` are
deleted too. With the setting ``dense`` every order of every classifier gets every count in both
directions. The profile of the paper reveals every count of any classifier, as its tables do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foci.audits.settings import AuditSettings
from foci.metrics.cohort.selected_only import adaptive_budget
from foci.reveal import GRID

KEPT = 32
"""Tiles that are kept for the selected-only AUC, as in the paper."""

DELETED_ORDERS = 3
"""Random orders whose tiles are deleted too; all of them if dense."""

EVERY_COUNT_UP_TO = 256
"""Tiles of a bag up to which every count is deleted; one call for all of them costs little."""

FINE = (
    *range(1, 16),
    *range(16, 32, 2),
    *range(32, 64, 4),
    *range(64, 128, 8),
    *range(128, 257, 16),
)
"""Counts beyond the crossing for rankings that are compared; random orders have ``GRID``."""


def counts_beyond(settings: AuditSettings, n_tiles: int, *, control: bool) -> list[int]:
    """Counts that are revealed beyond the crossing, for areas, mean curves and selected-only AUC.

    >>> counts_beyond(AuditSettings(deletion=(5,)), 20, control=True)
    [1, 2, 3, 4, 5, 6, 8, 12, 16, 20]
    """
    wanted = {*(GRID if control else FINE), *settings.deletion, KEPT, adaptive_budget(n_tiles)}
    last = min(settings.k_max, n_tiles)
    return sorted({k for k in wanted if k < last} | {last})


def reveal_counts(settings: AuditSettings, n_tiles: int) -> NDArray[np.int64]:
    """Every reveal count of a slide, up to ``k_max``.

    >>> reveal_counts(AuditSettings(k_max=4), 3).tolist()
    [1, 2, 3]
    """
    return np.arange(1, min(settings.k_max, n_tiles) + 1, dtype=np.int64)


def deletion_counts(settings: AuditSettings, n_tiles: int, *, dense: bool) -> NDArray[np.int64]:
    """Deletion counts of a slide: those that are reported, and every one up to ``k_max`` if dense.

    At least one tile stays.

    >>> deletion_counts(AuditSettings(k_max=6, deletion=(2, 8)), 20, dense=True).tolist()
    [1, 2, 3, 4, 5, 6, 8]
    >>> deletion_counts(AuditSettings(k_max=6, deletion=(2, 8)), 20, dense=False).tolist()
    [2, 8]
    """
    every = range(1, min(settings.k_max, n_tiles) + 1) if dense else ()
    counts = {k for k in (*every, *settings.deletion) if k < n_tiles}
    return np.array(sorted(counts), dtype=np.int64)


def decisive_grid(settings: AuditSettings, n_tiles: int) -> list[int]:
    """Counts at which decisive K is looked for first: those reported, and every 16th of the bag.

    >>> decisive_grid(AuditSettings(deletion=(1, 2, 4, 8)), 200)[:8]
    [1, 2, 4, 8, 12, 24, 36, 48]
    """
    last = min(settings.k_max, n_tiles - 1)
    step = max(1, n_tiles // 16)
    asked = {*settings.deletion, *range(step, last + 1, step), last}
    return sorted(k for k in asked if k <= last)
