"""Write and read ``rankings.parquet``: score and rank of every tile under every ranking."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from foci.rankings import Ranking

SCORE, RANK = "score:", "rank:"


@dataclass(frozen=True, eq=False)
class RankedTiles:
    """Candidate tiles of one slide, with their scores under every ranking.

    Attributes:
        slide_id: The slide.
        tiles: ``[N]`` index of every tile in its file.
        coords: ``[N, 2]`` top-left corners, or None.
        scores: ``[N]`` per ranking, by :func:`foci.audits.folder.names.column`. Random
            orders are not stored: :func:`foci.rankings.score` draws the same ones again.
    """

    slide_id: str
    tiles: NDArray[np.int64]
    coords: NDArray[np.int64] | None
    scores: Mapping[str, NDArray[np.float64]]

    def __len__(self) -> int:
        return len(self.tiles)

    def order(self, column: str) -> NDArray[np.int64]:
        """Positions of the tiles in the bag, most important first."""
        return Ranking(column, self.slide_id, self.scores[column]).order


def to_arrow(slide: RankedTiles) -> pa.Table:
    """Convert a slide to rows of ``rankings.parquet``, one per tile."""
    n = len(slide)
    x, y = (None, None) if slide.coords is None else slide.coords.T
    columns: dict[str, pa.Array] = {
        "slide_id": pa.repeat(pa.scalar(slide.slide_id), n),
        "tile": pa.array(slide.tiles, pa.int32()),
        "x": pa.nulls(n, pa.int64()) if x is None else pa.array(x, pa.int64()),
        "y": pa.nulls(n, pa.int64()) if y is None else pa.array(y, pa.int64()),
    }
    for name, scores in slide.scores.items():
        columns[SCORE + name] = pa.array(scores, pa.float64())
        columns[RANK + name] = pa.array(Ranking(name, slide.slide_id, scores).ranks, pa.int32())
    return pa.table(columns)


def read_tiles(path: str | Path, slide_ids: Collection[str] | None = None) -> Iterator[RankedTiles]:
    """Read ``rankings.parquet`` one slide at a time, in the order of the audit.

    Args:
        path: The file.
        slide_ids: Slides to read; parts of the file that hold none of them are left alone.
    """
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            if slide_ids is not None:
                held = file.read_row_group(group, columns=["slide_id"])["slide_id"].unique()
                if not set(held.to_pylist()) & set(slide_ids):
                    continue
            table = file.read_row_group(group)
            names = table["slide_id"].to_numpy()
            for start, end in runs(names):
                if slide_ids is None or names[start] in slide_ids:
                    yield _slide(table.slice(start, end - start))


def runs(names: NDArray[Any]) -> Iterator[tuple[int, int]]:
    """Start and end of every run of equal names.

    >>> list(runs(np.array(["a", "a", "b"])))
    [(0, 2), (2, 3)]
    """
    changes = np.flatnonzero(names[1:] != names[:-1]) + 1
    ends = [0, *changes.tolist(), len(names)] if len(names) else []
    return itertools.pairwise(ends)


def _slide(rows: pa.Table) -> RankedTiles:
    placed = rows["x"].null_count == 0
    coords = np.column_stack([rows["x"].to_numpy(), rows["y"].to_numpy()]) if placed else None
    columns = [c.removeprefix(SCORE) for c in rows.column_names if c.startswith(SCORE)]
    return RankedTiles(
        slide_id=rows["slide_id"][0].as_py(),
        tiles=rows["tile"].to_numpy().astype(np.int64),
        coords=coords,
        scores={name: rows[SCORE + name].to_numpy() for name in columns},
    )
