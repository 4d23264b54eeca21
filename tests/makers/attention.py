"""Cohorts whose classifier is known in closed form, so that any map of them is audited at once.

A tenth of the tiles of a slide are witnesses: they lie apart in feature space, in a direction that
all share and in one of their class. The classifier pools by attention along the first and reads the
second. Any map, whatever knows or does not know something, is one score per tile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foci.audits import AuditedSlide, Curve, CurveTable, Summary
from foci.audits.settings import null_counts
from foci.rankings import NULL_MAPS, Ranking, uniform_scores
from foci.rankings.controls import null_directions
from tests.makers.curves import CLASSES, Settings, summarised, two

Floats = NDArray[np.float64]
Scores = Sequence[Floats]
"""One array per slide, one score per tile."""

D_IN = 6
RANDOM_ORDERS = 10


@dataclass(frozen=True, eq=False)
class AttentionCohort:
    """Slides with features, and a classifier with attention of which everything is known.

    Attributes:
        features: ``[N, D]`` of every slide.
        cases: Patient of every slide.
        names: Of the slides.
    """

    features: tuple[Floats, ...]
    cases: tuple[str, ...]
    names: tuple[str, ...]

    @classmethod
    def drawn(
        cls, n_slides: int = 60, n_tiles: int = 150, *, background: float = 0.0, seed: int = 0
    ) -> AttentionCohort:
        """One slide per patient; the class of every other slide is the second one.

        With some ``background`` all other tiles speak for the class, too: one tile is enough.
        """
        rng = np.random.default_rng(seed)
        bags = []
        for number in range(n_slides):
            x = rng.normal(size=(int(rng.integers(n_tiles // 2, n_tiles + 1)), D_IN))
            towards = _own() if number % 2 else -_own()
            x += background * towards
            x[::10] += 3 * (_shared() + towards)
            bags.append(x[rng.permutation(len(x))])
        names = tuple(f"s{number}" for number in range(n_slides))
        return cls(tuple(bags), tuple(f"P-{name}" for name in names), names)

    def of(self, rows: Sequence[int]) -> AttentionCohort:
        """Some of the slides, in another order."""
        every = (self.features, self.cases, self.names)
        return AttentionCohort(*(tuple(one[row] for row in rows) for one in every))  # type: ignore[arg-type]

    @property
    def native(self) -> Scores:
        """The classifier's own attention."""
        return [x @ _shared() for x in self.features]

    @cached_property
    def evidence(self) -> Scores:
        """How much every tile argues for the predicted class, by its weight."""
        signs = [
            1 if self.probs(x, np.ones((1, len(x))))[0, 1] > 0.5 else -1 for x in self.features
        ]
        return [
            sign * (x @ _own()) * np.exp(x @ _shared())
            for x, sign in zip(self.features, signs, strict=True)
        ]

    def directions(self, n: int, seed: int) -> Floats:
        """Random directions ``[n, D]``, in the units of the features."""
        return null_directions(n, np.concatenate(self.features).std(axis=0), seed).numpy()

    def along(self, direction: Floats) -> Scores:
        """A map that knows nothing: a direction in feature space."""
        return [x @ direction for x in self.features]

    def chance(self, seed: int) -> Scores:
        """A random order of every slide, unlike those of the audit."""
        return [
            uniform_scores(f"attack {name}", len(x), seed)
            for name, x in zip(self.names, self.features, strict=True)
        ]

    @staticmethod
    def probs(x: Floats, kept: Floats) -> Floats:
        """Probabilities ``[K, 2]`` of the tiles that are kept ``[K, N]``."""
        weights = kept * np.exp(x @ _shared())
        logits = 2.5 * (weights @ (x @ _own())) / weights.sum(axis=1)
        return two(1 / (1 + np.exp(-logits)), 1)

    def table(self, maps: Mapping[str, Scores], *, null_maps: bool = True) -> CurveTable:
        """Curves of every map and of random orders at every count, and of content-free maps."""
        curves: list[Curve] = []
        for ranking, scores in maps.items():
            for number in range(len(self.names)):
                one = Ranking(ranking, self.names[number], scores[number])
                curves += self._both(number, ranking, None, one)
        return CurveTable.of([*curves, *self._chance, *(self._nulls if null_maps else ())])

    @cached_property
    def _chance(self) -> list[Curve]:
        curves = []
        for seed in range(RANDOM_ORDERS):
            for number, name in enumerate(self.names):
                drawn = uniform_scores(name, len(self.features[number]), seed)
                curves += self._both(number, "random", seed, Ranking("random", name, drawn))
        return curves

    @cached_property
    def _nulls(self) -> list[Curve]:
        directions = self.directions(Settings().null_maps, seed=0)
        return [self._null(number, directions) for number in range(len(self.names))]

    def summary(
        self,
        maps: Mapping[str, Scores],
        settings: Settings = Settings(),  # noqa: B008
    ) -> Summary:
        """The audit of some maps, ``native`` among them."""
        known = [
            AuditedSlide(name, case, None, len(x), len(x))
            for name, case, x in zip(self.names, self.cases, self.features, strict=True)
        ]
        table = self.table(maps, null_maps=settings.null_maps > 0)
        return summarised(table, known, CLASSES, settings, [])

    def _both(self, number: int, ranking: str, seed: int | None, one: Ranking) -> list[Curve]:
        x, name = self.features[number], self.names[number]
        n, full = len(x), self.probs(x, np.ones((1, len(x))))[0]
        first = np.empty((n, n))  # row k: the first k + 1 tiles
        first[:, one.order] = np.tril(np.ones((n, n)))
        ks = np.arange(1, n + 1)
        made: list[Any] = [
            ("insert", ks, self.probs(x, first)),
            ("delete", ks[:-1], self.probs(x, 1 - first[:-1])),
        ]
        return [
            Curve(name, ranking, seed, direction, n, counts, probs, full, one.tied)
            for direction, counts, probs in made
        ]

    def _null(self, number: int, directions: Floats) -> Curve:
        x, name = self.features[number], self.names[number]
        length = np.linalg.norm(x, axis=1)
        ranks = np.argsort(np.argsort(-np.stack([*(directions @ x.T), length, -length]), axis=1))
        ks = np.array([k for k in np.unique(null_counts(len(x))).tolist() if k], dtype=np.int64)
        kept = (ranks[:, None] >= ks[:, None]).reshape(-1, len(x)).astype(np.float64)
        full = self.probs(x, np.ones((1, len(x))))[0]
        return Curve(name, NULL_MAPS, None, "delete", len(x), ks, self.probs(x, kept), full)


def _shared() -> Floats:
    return np.eye(D_IN)[0]


def _own() -> Floats:
    return np.eye(D_IN)[1]
