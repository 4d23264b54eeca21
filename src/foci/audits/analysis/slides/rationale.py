"""MSK and decisive K of every slide at a threshold: do these tiles suffice, and are they needed?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foci.audits.analysis.answers.threshold import Threshold
from foci.audits.analysis.slides.views import ViewSlides
from foci.errors import FociError
from foci.metrics import decisive_points
from foci.metrics.cohort.decisive import decisive_counts
from foci.metrics.cohort.stacked import Stack, first_counts
from foci.metrics.curve.decisive import PAPER_BETA
from foci.metrics.inputs import Chosen, Floats, Marks


@dataclass(frozen=True, eq=False)
class Decisive:
    """Decisive K of R seeds on S slides, ``[R, S]`` each (``[S]`` for one seed).

    Attributes:
        count: Decisive K, flip form; NaN where there is none.
        stable: The count from which both conditions hold at every later count.
        outcome: ``"count"``, ``"beyond"``, ``"none"`` or ``"not assessable"``.
        flips_back: Whether a decisive count exists and a later one is not decisive.
        paper: The paper's form: at most 0.2 of the target's probability is left.
        exact: Whether every count up to ``min(K_max, N - 1)`` was tried.
    """

    count: Floats
    stable: Floats
    outcome: NDArray[np.str_]
    flips_back: Marks
    paper: Floats
    exact: Marks

    def of(self, slides: Chosen) -> Decisive:
        """Decisive K of some slides."""
        return Decisive(
            count=self.count[..., slides],
            stable=self.stable[..., slides],
            outcome=self.outcome[..., slides],
            flips_back=self.flips_back[..., slides],
            paper=self.paper[..., slides],
            exact=self.exact[..., slides],
        )

    @classmethod
    def over_seeds(cls, seeds: Sequence[Decisive]) -> Decisive:
        """Stack the seeds of a ranking."""
        return cls(
            count=np.stack([one.count for one in seeds]),
            stable=np.stack([one.stable for one in seeds]),
            outcome=np.stack([one.outcome for one in seeds]),
            flips_back=np.stack([one.flips_back for one in seeds]),
            paper=np.stack([one.paper for one in seeds]),
            exact=np.stack([one.exact for one in seeds]),
        )


@dataclass(frozen=True, eq=False)
class CountsAt:
    """MSK and decisive K at one threshold, ``[R, S]`` each (``[S]`` for one seed).

    Decisive K has the seeds whose tiles were deleted.

    Attributes:
        msk: NaN where not reached.
        decisive: NaN where there is none; None where deletion was not measured.
    """

    msk: Floats
    decisive: Floats | None

    def of(self, slides: Chosen) -> CountsAt:
        """The counts of some slides."""
        decisive = None if self.decisive is None else self.decisive[..., slides]
        return CountsAt(self.msk[..., slides], decisive)

    @classmethod
    def over_seeds(cls, seeds: Sequence[CountsAt]) -> CountsAt:
        """Stack the seeds of a ranking."""
        counts = [one.decisive for one in seeds if one.decisive is not None]
        known = np.stack(counts) if counts else None
        return cls(np.stack([one.msk for one in seeds]), known)


def decisive_of(
    insert: Sequence[Stack], delete: Sequence[Stack], group: ViewSlides, kappa: float, k_max: int
) -> Decisive | None:
    """Decisive K of one seed in both forms; None where no counts are known in both directions."""
    if not delete:
        return None
    try:
        flip = decisive_points(insert, delete, group.targets, group.n_tiles, kappa, k_max)
    except FociError:  # an audit may reveal and delete at counts of its own that never meet
        return None
    paper = decisive_points(
        insert, delete, group.targets, group.n_tiles, kappa, k_max, beta=PAPER_BETA
    )
    return Decisive(
        count=flip.count,
        stable=flip.stable,
        outcome=flip.outcome,
        flips_back=flip.flips_back,
        paper=paper.count,
        exact=_dense(delete, group, k_max),
    )


def counts_at(
    insert: Sequence[Stack],
    delete: Sequence[Stack],
    group: ViewSlides,
    thresholds: Sequence[Threshold],
    k_max: int,
) -> dict[Threshold, CountsAt]:
    """MSK and decisive K of one seed at every threshold.

    Args:
        insert: Insertion curves of the slides.
        delete: Their deletion curves; empty where decisive K is not to be had.
        group: The slides and the classes followed.
        thresholds: At least one.
        k_max: Largest count.
    """
    needed = np.stack([threshold.needed(group) for threshold in thresholds])
    msk = first_counts(insert, group.targets, needed)
    decisive: Sequence[Floats | None] = [None] * len(thresholds)
    if delete:
        counts = decisive_counts(insert, delete, group.targets, group.n_tiles, needed, k_max)
        decisive = list(counts)
    return {
        threshold: CountsAt(*counts)
        for threshold, counts in zip(thresholds, zip(msk, decisive, strict=True), strict=True)
    }


def _dense(delete: Sequence[Stack], group: ViewSlides, k_max: int) -> Marks:
    """``[S]`` whether tiles were deleted at every count up to ``min(K_max, N - 1)``."""
    dense = np.ones(len(group), dtype=bool)
    for part in delete:
        tried = ((part.ks >= 1) & (part.ks <= k_max)).sum()
        dense[part.rows] = tried >= np.minimum(k_max, group.n_tiles[part.rows] - 1)
    return dense
