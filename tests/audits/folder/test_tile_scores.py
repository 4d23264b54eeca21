"""Scores survive Parquet, one slide at a time."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from foci.audits.stored import RankedTiles, read_tiles, scores_to_arrow


def slide(name: str, n: int, placed: bool = True) -> RankedTiles:
    rng = np.random.default_rng(n)
    return RankedTiles(
        slide_id=name,
        tiles=np.sort(rng.choice(100, n, replace=False)).astype(np.int64),
        coords=rng.integers(-5, 10**6, (n, 2)) if placed else None,
        scores={"native": rng.normal(size=n), "selector-1": rng.integers(0, 2, n) * 1.0},
    )


SLIDES = [slide("a", 4), slide("b", 1, placed=False), slide("c", 7), slide("d", 3)]


@pytest.mark.parametrize("group", [1, 2, 4])
def test_round_trip(tmp_path: Path, group: int) -> None:
    path = tmp_path / "rankings.parquet"
    with pq.ParquetWriter(path, scores_to_arrow(SLIDES[0]).schema) as writer:
        for start in range(0, len(SLIDES), group):
            tables = [scores_to_arrow(one) for one in SLIDES[start : start + group]]
            writer.write_table(pa.concat_tables(tables))
    again = list(read_tiles(path))
    assert [one.slide_id for one in again] == ["a", "b", "c", "d"]
    for got, want in zip(again, SLIDES, strict=True):
        np.testing.assert_array_equal(got.tiles, want.tiles)
        assert (got.coords is None) == (want.coords is None)
        if want.coords is not None:
            np.testing.assert_array_equal(got.coords, want.coords)
        assert list(got.scores) == ["native", "selector-1"]
        for column, scores in want.scores.items():
            np.testing.assert_array_equal(got.scores[column], scores)


def test_ranks_are_stored_and_ties_go_to_the_earlier_tile() -> None:
    tied = RankedTiles("a", np.arange(4), None, {"native": np.array([1.0, 3.0, 1.0, 2.0])})
    assert scores_to_arrow(tied)["rank:native"].to_pylist() == [2, 0, 3, 1]
    assert tied.order("native").tolist() == [1, 3, 0, 2]
