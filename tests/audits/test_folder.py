"""The Parquet tables of an audit, and damaged and lost files."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from foci.audits import Curve, CurveTable
from foci.audits.folder import (
    AuditedSlide,
    RankedTiles,
    curves_to_arrow,
    from_arrow,
    lost_file,
    read_object,
    read_slides,
    read_tiles,
    readable,
    scores_to_arrow,
    slides_to_arrow,
)
from foci.errors import FociError
from foci.reveal import Direction
from tests.makers.curves import curve as crossing_curve
from tests.makers.curves import table


def curve(
    slide: str,
    ranking: str = "native",
    seed: int | None = None,
    direction: Direction = "insert",
    n: int = 5,
    classes: int = 3,
) -> Curve:
    rng = np.random.default_rng([n, classes, seed or 0])
    ks = np.arange(1, n + (direction == "insert"), dtype=np.int64)
    probs = rng.dirichlet(np.ones(classes), size=len(ks))
    return Curve(slide, ranking, seed, direction, n, ks, probs, rng.dirichlet(np.ones(classes)))


def same(a: Curve, b: Curve) -> bool:
    plain = ("slide_id", "ranking", "seed", "direction", "n_tiles")
    return all(getattr(a, name) == getattr(b, name) for name in plain) and all(
        np.array_equal(getattr(a, name), getattr(b, name)) for name in ("ks", "probs", "full")
    )


def some() -> list[Curve]:
    return [
        curve(slide, ranking, seed, direction, n)
        for ranking, seed in (("native", None), ("random", 0), ("random", 1))
        for direction in ("insert", "delete")
        for slide, n in (("a", 5), ("ä b", 2), ("c", 1))
    ]


def test_round_trip_to_the_bit(tmp_path: Path) -> None:
    curves = some()
    pq.write_table(curves_to_arrow(curves), tmp_path / "curves.parquet", row_group_size=4)
    again = from_arrow(pq.read_table(tmp_path / "curves.parquet"))
    assert len(again) == len(curves) == 18
    assert all(same(a, b) for a, b in zip(curves, again, strict=True))


def test_the_only_tile_of_a_bag_cannot_be_deleted() -> None:
    (again,) = from_arrow(curves_to_arrow([curve("a", direction="delete", n=1)]))
    assert again.probs.shape == (0, 3)
    assert again.ks.shape == (0,)


def test_a_table_finds_its_curves(tmp_path: Path) -> None:
    (tmp_path / "curves").mkdir()
    pq.write_table(curves_to_arrow(some()), tmp_path / "curves" / "part-00000.parquet")
    table = CurveTable.read(tmp_path)
    assert table.slide_ids == ("a", "ä b", "c")
    assert table.rankings == ("native", "random")
    assert table.seeds("native") == (None,)
    assert table.seeds("random") == (0, 1)
    assert [c.slide_id for c in table.get("random", 1, "delete")] == ["a", "ä b", "c"]
    assert [[c.seed for c in group] for group in table.every_seed("random")] == [[0] * 3, [1] * 3]


def test_what_is_not_there_is_said() -> None:
    table = CurveTable.of(some())
    with pytest.raises(FociError, match="ranking 'selector': holds no insert curves; rankings in"):
        table.get("selector")
    with pytest.raises(FociError, match="holds no delete curves of seed 7"):
        table.get("random", 7, "delete")


@pytest.mark.parametrize("left_out", [0, -1])
def test_rankings_with_different_slides_are_refused(left_out: int) -> None:
    curves = some()
    del curves[left_out]
    with pytest.raises(FociError, match="differ in their slides between rankings"):
        CurveTable.of(curves)


def test_insertion_ends_at_the_budget_and_deletion_stays() -> None:
    curves = table({"native": [[3, 9]], "random": [[1, 2]] * 2}, n_tiles=[4, 500])
    cut = curves.up_to(8)
    assert [len(c.ks) for c in cut.get("native")] == [4, 8]
    assert cut.get("random", 1)[1].probs.shape == (8, 2)
    assert (cut.rankings, cut.seeds("random")) == (("native", "random"), (0, 1))
    assert cut.deletions("native", None) == curves.deletions("native", None)
    assert curves.up_to(256).get("native") == curves.get("native")


def test_a_ranking_without_deletion() -> None:
    alone = CurveTable.of([crossing_curve("s0", "native", None, 3)])
    assert alone.deletions("native", None) == ()
    assert len(alone.up_to(2).get("native")[0].ks) == 2


def test_a_budget_below_the_first_count_is_refused() -> None:
    grid = CurveTable.of([crossing_curve("s0", "native", None, 3)])
    with pytest.raises(FociError, match="k_max"):
        grid.up_to(0)


def test_round_trip(tmp_path: Path) -> None:
    slides = (
        AuditedSlide(
            "007", "p1", "LUAD", 1024, 9000, "px", 512, "ab" * 32, None, "uni", 1, 4, "cd", 2.5,
            -0.1, "007.h5 lists the tiles of 007.pt in another order",
        ),
        AuditedSlide("ä", "p2", None, 3, 3, "um", None, "cd" * 32),
        AuditedSlide("x", "p3", "LUSC", skipped="x.h5: is truncated; copy it again"),
    )  # fmt: skip
    pq.write_table(slides_to_arrow(slides), tmp_path / "slides.parquet")
    assert read_slides(tmp_path / "slides.parquet") == slides


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
def test_round_trip_of_scores(tmp_path: Path, group: int) -> None:
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


# Damaged and lost files


def test_errors_name_the_file_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    for error, says in (
        (FileNotFoundError(2, "gone"), "is missing; run foci audit again"),
        (OSError("cut\nlong story"), r"cannot be read \(cut\); run foci audit again"),
        (pa.ArrowInvalid("no magic bytes"), r"cannot be read \(no magic bytes\)"),
        (pa.ArrowKeyError("no column"), r"cannot be read \(.*no column"),
        (ValueError(), r"cannot be read \(ValueError\)"),
    ):
        with pytest.raises(FociError, match=rf"a\.parquet: {says}"), readable(path):
            raise error
    with pytest.raises(FociError, match=r"^mine: "), readable(path):
        raise FociError("mine", "is known", "leave it")


@pytest.mark.parametrize("content", [b"[]", b"3", b"null", b"{", b"", b"\xff\xfe\x00"])
def test_what_is_no_object(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(FociError, match=r"a\.json: (is damaged|cannot be read) \("):
        read_object(tmp_path / "a.json")


def test_lost_files(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    assert lost_file(tmp_path, {}) is None
    assert lost_file(tmp_path, {"a": ""}) is None
    assert lost_file(tmp_path, {"a": "", "b": "", "c": ""}) == "b"
