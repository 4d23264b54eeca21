"""The table ``curves.parquet``: class probabilities at every count of tiles."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from foci.errors import FociError
from foci.metrics import truncate
from foci.reveal import Curve, Direction
from foci.words.plural import counted

SCHEMA = pa.schema(
    [
        pa.field("slide_id", pa.string(), nullable=False),
        pa.field("ranking", pa.string(), nullable=False),
        pa.field("seed", pa.int32()),
        pa.field("direction", pa.string(), nullable=False),
        pa.field("n_tiles", pa.int32(), nullable=False),
        pa.field("ks", pa.list_(pa.int32()), nullable=False),
        pa.field("probs", pa.list_(pa.float64()), nullable=False),
        pa.field("full", pa.list_(pa.float64()), nullable=False),
    ]
)
"""``probs`` holds ``len(ks)`` rows of ``len(full)`` classes, one row after the other."""

REPEATED = ["slide_id", "ranking", "direction", "ks.list.element"]
"""Columns whose values repeat, the only ones that a dictionary makes smaller."""


Order = tuple[str, int | None]
"""Ranking and seed: one order of the tiles of every slide."""


@dataclass(frozen=True, repr=False)
class CurveTable:
    """All curves of an audit, by ranking, seed and direction, each for the same slides.

    Attributes:
        slide_ids: The slides, in order.
    """

    slide_ids: tuple[str, ...]
    _curves: dict[tuple[str, int | None, str], tuple[Curve, ...]]

    def __repr__(self) -> str:
        names = ", ".join(self.rankings)
        return f"CurveTable({counted(len(self.slide_ids), 'slide')}; rankings: {names})"

    @classmethod
    def of(cls, curves: Iterable[Curve]) -> CurveTable:
        """Arrange curves; every ranking must hold the same slides in the same order."""
        groups: dict[tuple[str, int | None, str], list[Curve]] = {}
        for curve in curves:
            groups.setdefault((curve.ranking, curve.seed, curve.direction), []).append(curve)
        names = {tuple(c.slide_id for c in group) for group in groups.values()}
        if len(names) != 1:
            raise FociError("curves", "differ in their slides between rankings", "audit again")
        return cls(next(iter(names)), {key: tuple(group) for key, group in groups.items()})

    @classmethod
    def read(cls, path: str | Path) -> CurveTable:
        """Read ``curves.parquet``."""
        return cls.of(from_arrow(pq.read_table(path, schema=SCHEMA)))

    @property
    def n_classes(self) -> int:
        """Number of classes of the classifier."""
        return len(next(iter(self._curves.values()))[0].full)

    @property
    def rankings(self) -> tuple[str, ...]:
        """Names of the rankings, in the order of the run."""
        return tuple(dict.fromkeys(ranking for ranking, _, _ in self._curves))

    def seeds(self, ranking: str) -> tuple[int | None, ...]:
        """Seeds of a ranking; ``(None,)`` where nothing is drawn."""
        return tuple(dict.fromkeys(s for name, s, _ in self._curves if name == ranking))

    @property
    def orders(self) -> list[Order]:
        """Every ranking with each of its seeds."""
        return [(ranking, seed) for ranking in self.rankings for seed in self.seeds(ranking)]

    def get(
        self, ranking: str, seed: int | None = None, direction: Direction = "insert"
    ) -> tuple[Curve, ...]:
        """Curves of one ranking and seed, in the order of :attr:`slide_ids`."""
        key = (ranking, seed, direction)
        if key not in self._curves:
            known = ", ".join(self.rankings)
            what = f"holds no {direction} curves" + ("" if seed is None else f" of seed {seed}")
            raise FociError(f"ranking {ranking!r}", what, f"rankings in this audit: {known}")
        return self._curves[key]

    def every_seed(
        self, ranking: str, direction: Direction = "insert"
    ) -> tuple[tuple[Curve, ...], ...]:
        """:meth:`get` for each seed."""
        return tuple(self.get(ranking, seed, direction) for seed in self.seeds(ranking))

    def deletions(self, ranking: str, seed: int | None) -> tuple[Curve, ...]:
        """Deletion curves of a ranking and seed; empty where none were measured."""
        return self._curves.get((ranking, seed, "delete"), ())

    def up_to(self, k_max: int) -> CurveTable:
        """The same audit as if no more than ``k_max`` tiles had ever been revealed.

        Deletion curves stay as they are: their counts are not a budget.
        """
        cut = {key: tuple(_cut(c, k_max) for c in group) for key, group in self._curves.items()}
        return CurveTable(self.slide_ids, cut)


def to_arrow(curves: Sequence[Curve]) -> pa.Table:
    """Curves as rows of ``curves.parquet``."""
    columns = {
        "slide_id": [c.slide_id for c in curves],
        "ranking": [c.ranking for c in curves],
        "seed": [c.seed for c in curves],
        "direction": [c.direction for c in curves],
        "n_tiles": [c.n_tiles for c in curves],
        "ks": [c.ks for c in curves],
        "probs": [c.probs.ravel() for c in curves],
        "full": [c.full for c in curves],
    }
    return pa.table(columns, schema=SCHEMA)


def from_arrow(table: pa.Table) -> list[Curve]:
    """Rows of ``curves.parquet`` as curves."""
    plain = {name: table[name].to_pylist() for name in ("slide_id", "ranking", "seed", "direction")}
    for field in SCHEMA:
        if not field.nullable and table[field.name].null_count:
            raise ValueError(f"column {field.name} has empty cells")
    lists = {name: _lists(table[name]) for name in ("ks", "probs", "full")}
    for kind, ks, probs, full in zip(plain["direction"], *lists.values(), strict=True):
        alone = kind == "delete"  # the only tile of a bag cannot be deleted
        if not (len(ks) or alone) or len(probs) != len(ks) * len(full):
            raise ValueError("a curve without a row of probabilities for every count")
    n_tiles = table["n_tiles"].to_pylist()
    return [
        Curve(
            slide_id=plain["slide_id"][row],
            ranking=plain["ranking"][row],
            seed=plain["seed"][row],
            direction=plain["direction"][row],
            n_tiles=n_tiles[row],
            ks=lists["ks"][row].astype(np.int64),
            probs=lists["probs"][row].reshape(-1, len(lists["full"][row])),
            full=lists["full"][row],
        )
        for row in range(len(table))
    ]


def _lists(column: pa.ChunkedArray) -> list[NDArray[np.float64]]:
    values = []
    for chunk in column.chunks:
        flat, ends = chunk.values.to_numpy(), chunk.offsets.to_numpy()
        values += [flat[a:b] for a, b in itertools.pairwise(ends)]
    return values


def _cut(curve: Curve, k_max: int) -> Curve:
    """An insertion curve within a smaller budget."""
    if curve.direction == "delete" or curve.ks[-1] <= k_max:
        return curve
    probs, ks = truncate(curve.probs, curve.ks, k_max)
    return replace(curve, probs=probs, ks=ks)
