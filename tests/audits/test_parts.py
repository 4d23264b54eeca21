"""Partial results, and the tables that they are merged into."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from foci.audits import StoredAudit
from foci.audits.folder import AuditedSlide, from_arrow
from foci.audits.jobs import RankingJob
from foci.audits.parts import Assembly, PartialResults, RevealedSlide
from foci.audits.reveal import SlideReveal
from foci.errors import CohortError, FociError
from tests.makers.audits import model, settings
from tests.makers.cohorts import read

NATIVE, RANDOM = RankingJob("native"), RankingJob("random", orders=2)


def revealed(files: Path) -> list[RevealedSlide]:
    cohort, work = read(files), SlideReveal(model(), settings())
    return [work(cohort[name], cohort.bag(name), (NATIVE, RANDOM)) for name in ("s09", "s10")]


def test_written_and_read_again(files: Path) -> None:
    parts, found = PartialResults(files / "out"), revealed(files)
    assert parts.slides(0) is None
    assert parts.missing(0, (NATIVE, RANDOM)) == (NATIVE, RANDOM)
    facts = [found[0].slide, AuditedSlide("bad", "p", skipped="is cut"), found[1].slide]
    parts.write_slides(0, facts, found)
    parts.write_job(0, NATIVE, found)
    assert parts.slides(0) == tuple(facts)
    assert parts.slides(1) is None
    assert parts.missing(0, (NATIVE, RANDOM)) == (RANDOM,)
    parts.write_job(0, RANDOM, found)
    table = parts.job(0, RANDOM)
    assert [(c.slide_id, c.seed, c.direction) for c in from_arrow(table)] == [
        (slide, seed, direction)
        for slide in ("s09", "s10")
        for direction in ("insert", "delete")
        for seed in (0, 1)
    ]
    assert table["scores"].null_count == 8
    native = parts.job(0, NATIVE)["scores"].to_pylist()
    assert [row is None for row in native] == [False, True, False, True]
    np.testing.assert_array_equal(native[2], found[1].scores["native"])
    places = parts.places(0).to_pylist()
    assert [row["tiles"] is None for row in places] == [False, True, False]
    assert places[0]["tiles"] == [0, 1, 2, 3, 4]
    assert found[0].coords is not None
    assert list(zip(places[0]["x"], places[0]["y"], strict=True)) == [
        tuple(place) for place in found[0].coords.tolist()
    ]
    assert sorted(p.relative_to(parts.folder).as_posix() for p in parts.folder.rglob("*.*")) == [
        "native/00000.parquet", "random/00000.parquet", "slides/00000.parquet",
    ]  # fmt: skip


def assembled(
    folder: Path,
    parts: PartialResults,
    n_blocks: int,
    jobs: Sequence[RankingJob],
    wanted: list[str],
) -> tuple[AuditedSlide, ...]:
    with Assembly(folder, parts, n_blocks, jobs) as assembly:
        return assembly.finish(wanted, [])


def test_one_row_group_per_block(audited: StoredAudit) -> None:
    for name in ("curves.parquet", "rankings.parquet"):
        with pq.ParquetFile(audited.folder / name) as file:
            assert file.num_row_groups == 3  # five slides, two per block
    units = 1 + 1 + 2
    with pq.ParquetFile(audited.folder / "curves.parquet") as file:
        rows = [file.metadata.row_group(i).num_rows for i in range(3)]
    assert rows == [2 * 2 * units, 2 * 2 * units, 1 * 2 * units]
    with pq.ParquetFile(audited.folder / "rankings.parquet") as file:
        assert [file.metadata.row_group(i).num_rows for i in range(3)] == [5 + 1, 9 + 7, 8]
        assert file.schema_arrow.names == [
            "slide_id", "tile", "x", "y", "score:native", "rank:native", "score:selector-0",
            "rank:selector-0",
        ]  # fmt: skip


def test_nothing_to_assemble(tmp_path: Path) -> None:
    parts, unit = PartialResults(tmp_path), RankingJob("native")
    parts.write_slides(0, [AuditedSlide("a", "p", skipped="a.h5: is cut; copy it again")], [])
    parts.write_job(0, unit, [])
    with pytest.raises(CohortError, match=r"no slide that can be audited \(a.h5: is cut; copy it"):
        assembled(tmp_path, parts, 1, [unit], ["a"])


def test_nobody_is_lost(audited: StoredAudit, files: Path) -> None:
    parts, units = PartialResults(files), (RankingJob("native"), RankingJob("random", orders=2))
    cohort, work = read(files), SlideReveal(model(), settings())
    names = ["s09", "s10", "s11"]
    found = [work(cohort[name], cohort.bag(name), units) for name in names]
    for number, block in enumerate((found[:2], found[2:])):
        parts.write_slides(number, [one.slide for one in block], block)
        for unit in units:
            parts.write_job(number, unit, block)
    whole = assembled(files, parts, 2, units, names)
    assert [slide.slide_id for slide in whole] == names
    made = [files / name for name in ("slides.parquet", "curves.parquet", "rankings.parquet")]
    for path in made:
        path.unlink()
    with pytest.raises(FociError, match=r"parts: does not hold slide s12; give .* --force"):
        assembled(files, parts, 2, units, [*names, "s12"])
    with pytest.raises(FociError, match="parts: holds other slides than the cohort"):
        assembled(files, parts, 2, units, names[:2])
    for part, says in (("random", "block 1 of random"), ("slides", "block 1 of slides")):
        (parts.folder / part / "00001.parquet").unlink()
        with pytest.raises(FociError, match=f"parts: has lost {says}; give the same foci audit"):
            assembled(files, parts, 2, units, names)
    (parts.folder / "slides" / "00001.parquet").write_bytes(b"garbage")
    with pytest.raises(FociError, match=r"slides.00001\.parquet: cannot be read \("):
        assembled(files, parts, 2, units, names)
    assert not any(path.exists() for path in made)


def test_blocks_merge_while_others_are_computed(files: Path, tmp_path: Path) -> None:
    units, cohort = (RankingJob("native"), RankingJob("random", orders=2)), read(files)
    work, names = SlideReveal(model(), settings()), ["s09", "s10", "s11"]
    found = [work(cohort[name], cohort.bag(name), units) for name in names]
    seen: list[str] = []
    for place, early in (("late", False), ("early", True)):
        folder = tmp_path / place
        parts = PartialResults(folder)
        seen.clear()
        with Assembly(folder, parts, 3, units, lambda s: seen.append(s.slide_id)) as assembly:
            for number in (1, 0, 2):  # as two workers may end
                parts.write_slides(number, [found[number].slide], [found[number]])
                parts.write_job(number, units[0], [found[number]])
                assert not (early and assembly.merge_next())
                parts.write_job(number, units[1], [found[number]])
                while early and assembly.merge_next():
                    pass
                assert seen == ({1: [], 0: names[:2], 2: names}[number] if early else [])
            assert not (folder / "curves.parquet").exists()
            assembly.finish(names, [])
        assert seen == names
        assert not assembly.merge_next()
    for name in ("slides.parquet", "curves.parquet", "rankings.parquet"):
        assert (tmp_path / "early" / name).read_bytes() == (tmp_path / "late" / name).read_bytes()
    with pytest.raises(FociError), Assembly(tmp_path / "early", parts, 3, units) as assembly:
        assert assembly.merge_next()
        raise FociError("anything", "goes wrong", "later")
    assert [path.name for path in (tmp_path / "early").glob(".writing-*")] == []
