"""Ranking jobs: one ranking with one seed, or all random orders, computed together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from foci.audits.folder.names import column
from foci.audits.settings import AuditSettings
from foci.rankings import EmbeddedBag, Ranking, score
from foci.selectors import FittedSelector


@dataclass(frozen=True)
class RankingJob:
    """One ranking to compute on every slide: a column of the audit.

    Attributes:
        ranking: Name of the ranking.
        seed: Seed of the selector; None for all other rankings.
        selector: The selector with that seed.
        orders: Number of random orders; 0 for all other rankings.
        method: How tiles are scored, where that is not the ranking of this name.
        options: Options of the method, besides the selector.
    """

    ranking: str
    seed: int | None = None
    selector: FittedSelector | None = None
    orders: int = 0
    method: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def column(self) -> str:
        """Name of the job in tables and partial results."""
        return column(self.ranking, self.seed)

    @property
    def stored(self) -> bool:
        """Whether scores are stored; random orders can be drawn again from their seeds."""
        return not self.orders

    def rank(self, bag: EmbeddedBag) -> list[tuple[int | None, Ranking]]:
        """Rank the tiles of one bag; one ranking per seed."""
        if self.orders:
            seeds = range(self.orders)
            return [(seed, score("random", bag.backbone, bag, seed=seed)) for seed in seeds]
        own: dict[str, Any] = {} if self.selector is None else {"selector": self.selector}
        method = self.method or self.ranking
        return [(self.seed, score(method, bag.backbone, bag, **self.options, **own))]


def ranking_jobs(
    settings: AuditSettings, selectors: Mapping[int, FittedSelector]
) -> tuple[RankingJob, ...]:
    """List the ranking jobs of an audit, in the order of its rankings.

    >>> [job.column for job in ranking_jobs(AuditSettings(rankings=("random", "native")), {})]
    ['random', 'native']
    """
    jobs: list[RankingJob] = []
    for one in settings.requested:
        name = one.name
        if name == "selector":
            jobs += [RankingJob(name, seed, selectors[seed]) for seed in settings.seeds]
        elif name == "random":
            jobs.append(RankingJob(name, orders=settings.random_orders))
        else:
            jobs.append(RankingJob(name, method=one.method, options=one.options))
    return tuple(jobs)
