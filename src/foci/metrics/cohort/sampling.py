"""Which counts a ranking's numbers rest on: every one, or a grid, and with what error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from foci.metrics.cohort.stacked import Stack
from foci.metrics.curve.areas import area_error
from foci.metrics.curve.sufficiency import followed_class
from foci.metrics.inputs import Chosen, Floats, Integers, Marks


@dataclass(frozen=True, eq=False)
class Sampling:
    """Counts behind the curves of R seeds on S slides, ``[R, S]`` each (``[S]`` for one seed).

    Attributes:
        inserted: Whether every count up to ``min(K_max, N)`` was revealed.
        deleted: Whether every count up to ``min(K_max, N - 1)`` was deleted.
        walked: Largest count up to which every one was revealed.
        msk_exact: Whether every count below the first crossing was revealed.
        aukc_error: Bound on the error of the area; 0 where every count was revealed.
        n_deleted: Number of seeds whose tiles were deleted.
    """

    inserted: Marks
    deleted: Marks
    walked: Floats
    msk_exact: Marks
    aukc_error: Floats
    n_deleted: int

    def of(self, slides: Chosen) -> Sampling:
        """The counts behind some slides."""
        return Sampling(
            inserted=self.inserted[..., slides],
            deleted=self.deleted[..., slides],
            walked=self.walked[..., slides],
            msk_exact=self.msk_exact[..., slides],
            aukc_error=self.aukc_error[..., slides],
            n_deleted=self.n_deleted,
        )

    @classmethod
    def over_seeds(cls, seeds: Sequence[Sampling]) -> Sampling:
        """Stack the seeds of a ranking."""
        return cls(
            inserted=np.stack([one.inserted for one in seeds]),
            deleted=np.stack([one.deleted for one in seeds]),
            walked=np.stack([one.walked for one in seeds]),
            msk_exact=np.stack([one.msk_exact for one in seeds]),
            aukc_error=np.stack([one.aukc_error for one in seeds]),
            n_deleted=sum(one.n_deleted for one in seeds),
        )


def sampling_of(
    insert: Sequence[Stack],
    delete: Sequence[Stack],
    targets: Integers,
    n_tiles: Integers,
    msk: Floats,
    k_max: int,
) -> Sampling:
    """The counts behind one seed.

    Args:
        insert: Insertion curves of the slides.
        delete: Their deletion curves; empty where no tile was deleted.
        targets: ``[S]`` the class followed on each slide.
        n_tiles: ``[S]`` candidate tiles.
        msk: ``[S]`` first crossing; NaN where there is none.
        k_max: Largest count.
    """
    walked, error = np.zeros((2, len(targets)))
    for part in insert:
        walked[part.rows] = _without_gap(part.ks)
        error[part.rows] = area_error(followed_class(part.probs, targets[part.rows]), part.ks)
    removed = np.zeros(len(targets))
    for part in delete:
        removed[part.rows] = _without_gap(part.ks[part.ks > 0])
    inserted = walked >= np.minimum(k_max, n_tiles)
    return Sampling(
        inserted=inserted,
        deleted=removed >= np.minimum(k_max, n_tiles - 1),
        walked=walked,
        msk_exact=inserted | (msk <= walked),
        aukc_error=error,
        n_deleted=int(bool(delete)),
    )


def _without_gap(ks: Integers) -> int:
    """Largest count k such that 1, 2, ..., k are all among the counts."""
    return int((ks == np.arange(1, len(ks) + 1)).sum())
