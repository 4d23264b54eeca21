"""Agreement between rankings: Spearman correlation and top-K overlap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import accumulate, combinations, pairwise

import numpy as np
from scipy.stats import hypergeom

from foci.audits.folder import column
from foci.audits.records import Number, Record
from foci.audits.stored import CurveTable, RankedTiles
from foci.metrics.inputs import defined_mean
from foci.metrics.ranking import overlaps, rank_correlations

TOPS = (8, 32)


class PairAgreement(Record):
    """Mean agreement of two rankings over the slides: rank correlation and top-K overlap.

    ``chance8`` and ``chance32`` are the overlaps that two random orders of the same slides have.
    """

    first: str
    second: str
    spearman: Number
    jaccard8: Number
    jaccard32: Number
    chance8: Number = None
    chance32: Number = None


class Agreements:
    """Mean rank correlation and top-K overlap of every pair of rankings with stored scores.

    Averaged over the pairs of seeds of a slide, then over the slides. A slide with fewer than K
    tiles has no overlap at K, and a constant ranking has no correlation: both are left out.

    Args:
        columns: Names of the stored scores of every ranking, one per seed.
    """

    def __init__(self, columns: Mapping[str, Sequence[str]]) -> None:
        self.columns = columns
        self.per_slide: dict[tuple[str, str], list[list[float]]] = {}

    def add(self, slide: RankedTiles) -> None:
        """Compare the rankings of one slide."""
        stored = {
            ranking: own
            for ranking, names in self.columns.items()
            if (own := [name for name in names if name in slide.scores])
        }
        if len(stored) < 2:
            return
        ends = list(accumulate(map(len, stored.values()), initial=0))
        rows = {ranking: slice(*own) for ranking, own in zip(stored, pairwise(ends), strict=True)}
        scores = np.stack([slide.scores[name] for own in stored.values() for name in own])
        n_rankings, n_tiles = scores.shape
        absent = np.full((n_rankings, n_rankings), np.nan)
        tables = [rank_correlations(scores)]
        tables += [overlaps(scores, k) if k <= n_tiles else absent for k in TOPS]
        chance = [chance_overlap(n_tiles, k) for k in TOPS]
        for first, second in combinations(stored, 2):
            values = [float(defined_mean(table[rows[first], rows[second]])) for table in tables]
            self.per_slide.setdefault((first, second), []).append([*values, *chance])

    def over_slides(self) -> list[PairAgreement]:
        """One row per pair of rankings."""
        rows = []
        for (first, second), slides in self.per_slide.items():
            spearman, *shared = defined_mean(np.array(slides), axis=0).tolist()
            names = [f"{what}{k}" for what in ("jaccard", "chance") for k in TOPS]
            overlap = dict(zip(names, shared, strict=True))
            rows.append(PairAgreement(first=first, second=second, spearman=spearman, **overlap))
        return rows


def agreement(curves: CurveTable, tiles: Iterable[RankedTiles]) -> list[PairAgreement]:
    """:class:`Agreements` of a stored audit."""
    found = Agreements(
        {
            ranking: [column(ranking, seed) for seed in curves.seeds(ranking)]
            for ranking in curves.rankings
        }
    )
    for slide in tiles:
        found.add(slide)
    return found.over_slides()


@cache
def chance_overlap(n_tiles: int, k: int) -> float:
    r"""Expected Jaccard overlap of two random sets of K out of N tiles; NaN where K > N.

    .. math:: \mathbb{E}\Big[\frac{X}{2K - X}\Big], \qquad X \sim \mathrm{Hypergeometric}(N, K, K)

    >>> chance_overlap(8, 8), round(chance_overlap(2, 1), 3)
    (1.0, 0.5)
    """
    if k > n_tiles:
        return float("nan")
    shared = np.arange(max(0, 2 * k - n_tiles), k + 1)
    weights = hypergeom.pmf(shared, n_tiles, k, k)
    return float((weights * shared / (2 * k - shared)).sum())
