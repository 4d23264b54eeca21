"""Which counts of tiles are revealed and deleted on a slide."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from foci.audits.settings import AuditSettings
from foci.reveal import GRID


def reveal_counts(settings: AuditSettings, n_tiles: int) -> NDArray[np.int64]:
    """Reveal counts of a slide: every one up to ``k_max``, or a grid that ends at N at the latest.

    >>> reveal_counts(AuditSettings(k_max=4), 3).tolist()
    [1, 2, 3]
    >>> reveal_counts(AuditSettings(counts=(1, 2, 8, 32)), 5).tolist()
    [1, 2, 5]
    """
    every = range(1, min(settings.k_max, n_tiles) + 1)
    wanted = every if settings.counts is None else settings.counts
    return np.unique(np.minimum(np.asarray(wanted, dtype=np.int64), n_tiles))


def deletion_counts(
    settings: AuditSettings, n_tiles: int, *, closed_form: bool, control: bool = False
) -> NDArray[np.int64]:
    """Deletion counts of a slide: those that are reported, and those that decisive K asks for.

    Args:
        settings: Of the audit.
        n_tiles: Candidate tiles of the slide; at least one of them stays.
        closed_form: Whether all counts cost one pass over the tiles.
        control: For a random order, of which there are many: only the reported counts, unless all
            counts are wanted.

    >>> deletion_counts(AuditSettings(k_max=6, deletion=(2, 8)), 20, closed_form=True).tolist()
    [1, 2, 3, 4, 5, 6, 8]
    >>> deletion_counts(AuditSettings(k_max=6, deletion=(2, 8)), 20, closed_form=False).tolist()
    [1, 2, 3, 4, 6, 8]
    """
    dense = closed_form if settings.dense is None else settings.dense
    asked: Iterable[int]
    if dense:
        asked = range(1, min(settings.k_max, n_tiles) + 1)
    else:
        asked = () if control else tuple(k for k in GRID if k <= settings.k_max)
    counts = {k for k in (*asked, *settings.deletion) if k < n_tiles}
    return np.array(sorted(counts), dtype=np.int64)
