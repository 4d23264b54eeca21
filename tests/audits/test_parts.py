"""Partial results, and the tables that they are merged into."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from foci.audits import StoredAudit
from foci.audits.folder import (
    CURVES,
    RANKINGS,
    SLIDES,
    AuditedSlide,
    from_arrow,
    ranked_tiles,
    read_slides,
)
from foci.audits.jobs import RankingJob
from foci.audits.parts import Assembly, PartialResults, RevealedSlide
from foci.audits.reveal import SlideReveal
from foci.errors import CohortError, FociError
from tests.bit_flips import flipped
from tests.makers.audits import model, settings
from tests.makers.cohorts import read

JOBS = (RankingJob("native"), RankingJob("random", orders=2))


def revealed(files: Path, *names: str) -> list[RevealedSlide]:
    cohort, work = read(files), SlideReveal(model(), settings())
    return [work(cohort[name], cohort.bag(name), JOBS) for name in names]


def test_written_and_read_again(files: Path) -> None:
    parts, found = PartialResults(files / "out"), revealed(files, "s09", "s10")
    assert parts.kept(0, ["s09", "bad", "s10"]) is None
    assert not parts.complete(0)
    facts = [found[0].slide, AuditedSlide("bad", "p", skipped="is cut"), found[1].slide]
    parts.write(0, facts, found)
    assert parts.slides(0) == parts.kept(0, ["s09", "bad", "s10"]) == tuple(facts)
    assert parts.kept(0, ["s09", "s10"]) is None
    assert parts.kept(1, []) is None
    assert (parts.complete(0), parts.complete(1)) == (True, False)
    curves = from_arrow(parts.read(CURVES, 0))
    assert [(c.ranking, c.slide_id, c.seed, c.direction) for c in curves] == [
        (job.ranking, slide, seed, direction)
        for job, seeds in zip(JOBS, ([None], [0, 1]), strict=True)
        for slide in ("s09", "s10")
        for direction in ("insert", "delete")
        for seed in seeds
    ]
    for got, one in zip(ranked_tiles(parts.read(RANKINGS, 0)), found, strict=True):
        assert (got.slide_id, list(got.scores)) == (one.slide.slide_id, ["native"])
        np.testing.assert_array_equal(got.scores["native"], one.ranked.scores["native"])
        np.testing.assert_array_equal(got.tiles, one.ranked.tiles)
        assert one.ranked.coords is not None
        np.testing.assert_array_equal(got.coords, one.ranked.coords)
    assert sorted(p.relative_to(parts.folder).as_posix() for p in parts.folder.rglob("*.*")) == [
        "curves/00000.part", "rankings/00000.part", "slides/00000.part",
    ]  # fmt: skip


def assembled(folder: Path, n_blocks: int, wanted: list[str]) -> list[str]:
    with Assembly(folder, n_blocks) as assembly:
        assembly.finish(wanted, [])
    return [slide.slide_id for slide in read_slides(folder / "slides.parquet")]


def test_one_row_group_per_block(audited: StoredAudit) -> None:
    for name in ("curves.parquet", "rankings.parquet"):
        with pq.ParquetFile(audited.folder / name) as file:
            assert file.num_row_groups == 3  # five slides, two per block
    curves = 2 * (1 + 1 + 2) + 1  # both directions of each order, and all content-free maps
    with pq.ParquetFile(audited.folder / "curves.parquet") as file:
        rows = [file.metadata.row_group(i).num_rows for i in range(3)]
    assert rows == [2 * curves, 2 * curves, curves]
    with pq.ParquetFile(audited.folder / "rankings.parquet") as file:
        assert [file.metadata.row_group(i).num_rows for i in range(3)] == [5 + 1, 9 + 7, 8]
        assert file.schema_arrow.names == [
            "slide_id", "tile", "x", "y", "score:native", "rank:native", "score:selector-0",
            "rank:selector-0",
        ]  # fmt: skip


def test_nothing_to_assemble(tmp_path: Path) -> None:
    bad = AuditedSlide("a", "p", skipped="a.h5: is cut; copy it again")
    PartialResults(tmp_path).write(0, [bad], [])
    with pytest.raises(CohortError, match=r"no slide that can be audited \(a.h5: is cut; copy it"):
        assembled(tmp_path, 1, ["a"])


def test_nobody_is_lost(audited: StoredAudit, files: Path) -> None:
    parts, names = PartialResults(files), ["s09", "s10", "s11"]
    found = revealed(files, *names)
    for number, block in enumerate((found[:2], found[2:])):
        parts.write(number, [one.slide for one in block], block)
    assert assembled(files, 2, names) == names
    made = [files / name for name in ("slides.parquet", "curves.parquet", "rankings.parquet")]
    for path in made:
        path.unlink()
    with pytest.raises(FociError, match=r"parts: does not hold slide s12; give the same .* again$"):
        assembled(files, 2, [*names, "s12"])
    with pytest.raises(FociError, match="parts: holds other slides than the cohort"):
        assembled(files, 2, names[:2])
    parts.path(RANKINGS, 1).rename(files / "kept")
    (files / "kept").rename(parts.path(RANKINGS, 1))
    again = "; give the same foci audit command again$"
    for table in (SLIDES, RANKINGS, CURVES):
        path = parts.path(table, 1)
        content = path.read_bytes()
        path.unlink()
        with pytest.raises(FociError, match=rf"{path.parent.name}.00001\.part: is missing{again}"):
            assembled(files, 2, names)
        path.write_bytes(flipped(content, 8 * len(content) // 2))
        with pytest.raises(FociError, match=rf"read \(it is not as it was written\){again}"):
            assembled(files, 2, names)
        path.write_bytes(content)
    assert not any(path.exists() for path in made)


def test_blocks_merge_while_others_are_computed(files: Path, tmp_path: Path) -> None:
    names = ["s09", "s10", "s11"]
    found = revealed(files, *names)
    seen: list[str] = []
    for place, early in (("late", False), ("early", True)):
        folder = tmp_path / place
        parts = PartialResults(folder)
        seen.clear()
        with Assembly(folder, 3, lambda s: seen.append(s.slide_id)) as assembly:
            for number in (1, 0, 2):  # as two workers may end
                assert not (early and assembly.merge_next())
                parts.write(number, [found[number].slide], [found[number]])
                while early and assembly.merge_next():
                    pass
                assert seen == ({1: [], 0: names[:2], 2: names}[number] if early else [])
            assert not (folder / "curves.parquet").exists()
            assembly.finish(names, [])
        assert seen == names
        assert not assembly.merge_next()
    for name in ("slides.parquet", "curves.parquet", "rankings.parquet"):
        assert (tmp_path / "early" / name).read_bytes() == (tmp_path / "late" / name).read_bytes()
    with pytest.raises(FociError), Assembly(tmp_path / "early", 3) as assembly:
        assert assembly.merge_next()
        raise FociError("anything", "goes wrong", "later")
    assert [path.name for path in (tmp_path / "early").glob(".writing-*")] == []
