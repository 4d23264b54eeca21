"""Curves survive Parquet, to the bit, and are found again."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from foci.audits import Curve, CurveTable
from foci.audits.stored import curves_to_arrow, from_arrow
from foci.errors import FociError
from foci.reveal import Direction


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
    pq.write_table(curves_to_arrow(some()), tmp_path / "curves.parquet")
    table = CurveTable.read(tmp_path / "curves.parquet")
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
