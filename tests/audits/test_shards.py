"""Shards of slides: the parts that they write, and what they are joined into."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from foci.audits import CurveTable, StoredAudit
from foci.audits.folder import (
    CURVES,
    MEASURED,
    RANKINGS,
    AuditedSlide,
    RankedTiles,
    part_name,
    ranked_groups,
    read_slides,
    read_tiles,
)
from foci.audits.jobs import RankingJob
from foci.audits.measure import measure_slides
from foci.audits.reveal import ShardReveal, SlideReveal
from foci.audits.run_folder import RevealedSlide, Shards
from foci.errors import FociError
from tests.bit_flips import flipped
from tests.makers.audits import model, settings
from tests.makers.cohorts import read

JOBS = (RankingJob("native"), RankingJob("random", orders=2))


def work_on(files: Path, out: Path) -> ShardReveal:
    cohort = read(files)
    one = SlideReveal(model(), settings(), cohort.classes)
    out.joinpath("parts").mkdir(parents=True)
    return ShardReveal(cohort.slides, cohort.store, one, JOBS, Shards(out))


def write(files: Path, out: Path, *shards: tuple[str, ...]) -> Shards:
    """Shards of these slides; one that is called bad is skipped."""
    cohort, work = read(files), work_on(files, out)
    for number, names in enumerate(shards):
        good = [name for name in names if name != "bad"]
        found = {name: work.reveal(cohort[name], cohort.bag(name), JOBS) for name in good}
        bad = AuditedSlide("bad", "p", skipped="is cut")
        slides = [found[name].slide if name in found else bad for name in names]
        revealed: list[RevealedSlide] = list(found.values())
        work.shards.write(number, slides, revealed, *work._measured(revealed))
    return work.shards


def test_written_and_read_again(files: Path, tmp_path: Path) -> None:
    shards = write(files, tmp_path / "made", ("s09", "bad", "s10"))
    receipt = shards.receipt(0)
    assert receipt == shards.kept(0, ["s09", "bad", "s10"])
    assert [slide.skipped for slide in receipt.slides] == [None, "is cut", None]
    assert shards.kept(0, ["s09", "s10"]) is shards.kept(1, []) is None
    assert (shards.complete(0), shards.complete(1)) == (True, False)
    assert set(receipt.files) == {
        "parts/00000.means", *(part_name(table, 0) for table in (CURVES, RANKINGS, MEASURED)),
    }  # fmt: skip
    assert shards.intact(receipt)
    table = pq.read_table(shards.folder / part_name(CURVES, 0)).to_pylist()
    assert [(row["ranking"], row["slide_id"], row["seed"], row["direction"]) for row in table] == [
        (job.ranking, slide, seed, direction)
        for job, seeds in zip(JOBS, ([None], [0, 1]), strict=True)
        for slide in ("s09", "s10")
        for direction in ("insert", "delete")
        for seed in seeds
    ]
    cohort, one = read(files), SlideReveal(model(), settings())
    for got in read_tiles(shards.folder / part_name(RANKINGS, 0)):
        ranked = one(cohort[got.slide_id], cohort.bag(got.slide_id), JOBS).ranked
        assert list(got.scores) == ["native"]
        np.testing.assert_array_equal(got.scores["native"], ranked.scores["native"])
        np.testing.assert_array_equal(got.tiles, ranked.tiles)
        assert ranked.coords is not None
        np.testing.assert_array_equal(got.coords, ranked.coords)


def test_one_part_per_shard(audited: StoredAudit) -> None:
    curves = 2 * (1 + 1 + 2) + 1  # both directions of each order, and all content-free maps
    rows = [pq.read_metadata(audited.folder / part_name(CURVES, n)).num_rows for n in range(3)]
    assert rows == [2 * curves, 2 * curves, curves]  # five slides, two per shard
    parts = [pq.read_table(audited.folder / part_name(RANKINGS, n)) for n in range(3)]
    assert [len(part) for part in parts] == [5 + 1, 9 + 7, 8]
    assert parts[0].column_names == [
        "slide_id", "tile", "x", "y", "score:native", "rank:native", "score:selector-0",
        "rank:selector-0",
    ]  # fmt: skip


def test_curves_are_read_part_by_part(audited: StoredAudit) -> None:
    lazy = CurveTable.read(audited.folder)
    whole = CurveTable.of(
        curve for part in lazy.by_part() for own in part._curves.values() for curve in own
    )
    assert lazy.slide_ids == whole.slide_ids == tuple(s.slide_id for s in audited.slides)
    for order in whole.orders:
        for one, other in ((lazy, whole), (lazy.up_to(2), whole.up_to(2))):
            for found, curve in zip(one.get(*order), other.get(*order), strict=True):
                assert found.slide_id == curve.slide_id
                np.testing.assert_array_equal(found.ks, curve.ks)
                np.testing.assert_array_equal(found.probs, curve.probs)
        assert lazy.get(*order)[-1] is lazy.get(*order)[4] is lazy.get(*order)[4:][0]
        assert len(lazy.deletions(*order)) == 5
    with pytest.raises(IndexError):
        lazy.get("native")[5]


def test_what_shards_have_measured_is_what_the_curves_give(audited: StoredAudit) -> None:
    stored, classes = audited.manifest.settings, audited.manifest.classes
    kept = StoredAudit.load(audited.folder).measured()
    again = measure_slides(audited.curves, audited.slides, classes, stored)
    assert kept.mean_curves == again.mean_curves
    for view, table in again.tables.items():
        for name in ("msk", "aukc", "drops", "decisive_at", "deleted_all"):
            np.testing.assert_array_equal(getattr(kept.tables[view], name), getattr(table, name))
    np.testing.assert_array_equal(kept.kept, again.kept)
    assert kept.null_map_wins is not None
    np.testing.assert_array_equal(kept.null_map_wins, again.null_map_wins)


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [([3, 4], [7]), ([10_001], [10_001]), ([5, 10_001, 10_002, 6, 7], [5, 10_001, 10_002, 13])],
)
def test_a_large_slide_has_a_row_group_of_its_own(sizes: list[int], groups: list[int]) -> None:
    slides = [
        RankedTiles(f"s{i}", np.arange(n), None, {"native": np.zeros(n)})
        for i, n in enumerate(sizes)
    ]
    assert [len(table) for table in ranked_groups(slides)] == groups


def test_nobody_is_lost(files: Path, tmp_path: Path) -> None:
    names = ["s09", "s10", "s11"]
    shards = write(files, tmp_path / "made", ("s09", "s10"), ("s11",))
    folder = shards.folder
    with pytest.raises(FociError, match=r"parts: does not hold slide s12; give the same .* again$"):
        shards.finish(2, [*names, "s12"], [])
    with pytest.raises(FociError, match="parts: holds other slides than the cohort"):
        shards.finish(2, names[:2], [])
    path = shards.receipt_path(1)
    content = path.read_bytes()
    path.write_bytes(flipped(content, 8 * len(content) // 2))
    with pytest.raises(FociError, match=r"read \(it is not as it was written\); give the same"):
        shards.finish(2, names, [])
    assert shards.kept(1, ["s11"]) is None
    path.unlink()
    with pytest.raises(FociError, match=r"parts.00001\.part: is missing; give the same foci audit"):
        shards.finish(2, names, [])
    path.write_bytes(content)
    assert not (folder / "slides.parquet").exists()
    files_of, means = shards.finish(2, names, [AuditedSlide("x", "p", skipped="gone")])
    assert [slide.slide_id for slide in read_slides(folder / "slides.parquet")] == [*names, "x"]
    assert means == [shards.means_path(0), shards.means_path(1)]
    assert set(files_of) == {
        part_name(table, n) for table in (CURVES, RANKINGS, MEASURED) for n in range(2)
    }


@pytest.mark.parametrize("table", [CURVES, RANKINGS, MEASURED])
def test_damage_is_noticed(files: Path, tmp_path: Path, table: str) -> None:
    shards = write(files, tmp_path / "made", ("s09",))
    path = shards.folder / part_name(table, 0)
    path.write_bytes(flipped(path.read_bytes(), 8 * (path.stat().st_size // 2)))
    assert not shards.intact(shards.receipt(0))
    path.unlink()
    assert not shards.intact(shards.receipt(0))


def test_two_processes_do_not_compute_one_shard(files: Path, tmp_path: Path) -> None:
    first = work_on(files, tmp_path / "made").shards
    with first.claimed(0) as free:
        assert free
        with first.claimed(1) as other:
            assert other
        assert (tmp_path / "made" / "parts" / "00000.lock").exists()
    first.receipt_path(0).touch()
    with first.claimed(0) as free:
        assert not free
