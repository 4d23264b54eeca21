"""Rankings against marked tiles."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from foci.audits import RankedTiles, StoredAudit
from foci.audits.audit import attach, compare_with_marks, read_marks
from foci.audits.manifest import write_manifest
from foci.errors import FociError
from tests.makers.folders import bare_manifest


class Ranked(StoredAudit):
    """An audit whose tiles are given."""

    def tiles(self):  # type: ignore[no-untyped-def]
        yield RankedTiles(
            "a",
            np.array([0, 2, 3, 5]),
            None,
            {
                "native": np.array([9.0, 1.0, 5.0, 3.0]),
                "selector-0": np.array([1.0, 9.0, 2.0, 3.0]),
            },
        )
        yield RankedTiles("b", np.arange(2), None, {"native": np.ones(2), "selector-0": np.ones(2)})
        yield RankedTiles("unknown", np.arange(2), None, {"native": np.ones(2)})


MARKS = {
    "a": np.array([False, True, True, True, False, False]),  # candidates 0, 2, 3, 5: no yes yes no
    "b": np.array([False, False]),
}


def test_by_hand(tmp_path: Path) -> None:
    found = compare_with_marks(Ranked(tmp_path), MARKS, "marked by hand")
    assert found.n_slides == 1  # b has no witness, the third slide no marks
    assert found.chance == 0.5
    # four candidates, so the first 8 are all four
    assert found.precision8 == {"native": 0.5, "selector-0": 0.5}
    # native: no, yes (1/2), no, yes (2/4); selector: yes (1/1), no, yes (2/3), no
    assert found.average_precision["native"] == pytest.approx((1 / 2 + 2 / 4) / 2)
    assert found.average_precision["selector-0"] == pytest.approx((1 + 2 / 3) / 2)


def test_it_is_written_into_the_manifest(tmp_path: Path) -> None:
    write_manifest(tmp_path, bare_manifest("x"))
    audit = attach(Ranked(tmp_path), MARKS, "marked by hand")
    assert audit.manifest.name == "x"
    assert audit.manifest.truth.what == "marked by hand"


def test_marks_are_read_in_any_order(tmp_path: Path) -> None:
    table = {
        "slide_id": ["b", "a", "a", "b"],
        "tile": [1, 1, 0, 0],
        "witness": [True, False, True, False],
    }
    pq.write_table(pa.table(table), tmp_path / "truth.parquet")
    marks = read_marks(tmp_path / "truth.parquet")
    assert {name: m.tolist() for name, m in marks.items()} == {
        "a": [True, False],
        "b": [False, True],
    }


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"slide_id": ["a"], "tile": [0]}, "is no table of marked tiles"),
        ({"slide_id": ["a"], "tile": [1], "witness": [True]}, "every tile of a exactly once"),
        ({"slide_id": ["a"] * 2, "tile": [0, 0], "witness": [True] * 2}, "exactly once"),
    ],
)
def test_wrong_tables(tmp_path: Path, table: dict[str, list[object]], message: str) -> None:
    pq.write_table(pa.table(table), tmp_path / "truth.parquet")
    with pytest.raises(FociError, match=message):
        read_marks(tmp_path / "truth.parquet")


def test_not_parquet(tmp_path: Path) -> None:
    (tmp_path / "truth.csv").write_text("slide_id,tile,witness\n")
    with pytest.raises(FociError, match="is no table of marked tiles"):
        read_marks(tmp_path / "truth.csv")


def test_marks_of_another_cohort(tmp_path: Path) -> None:
    with pytest.raises(FociError, match="marks no tile of any audited slide"):
        compare_with_marks(Ranked(tmp_path), {"z": np.ones(3, bool)}, "")
    with pytest.raises(FociError, match="marks 3 tiles, the feature file has at least 6"):
        compare_with_marks(Ranked(tmp_path), {"a": np.ones(3, bool)}, "")
