"""Foreign scores, matched tile by tile or refused in one line."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from foci import rankings
from foci.bags import Bag
from foci.errors import FociError
from foci.rankings import from_file
from tests.rankings.trials import features, make

MODEL = make("abmil", "paper")


def bag(kept: list[int] | None = None, n_in_file: int | None = None, coords: bool = True) -> Bag:
    """Three tiles at (0, 0), (256, 0), (0, 256)."""
    places = np.array([[0, 0], [256, 0], [0, 256]]) if coords else None
    index = None if kept is None else np.array(kept)
    x = features(3).float().numpy()
    return Bag("s1", x, coords=places, kept=index, n_in_file=n_in_file)


def write(folder: Path, *lines: str, header: str = "slide_id,tile,score") -> Path:
    path = folder / "scores.csv"
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def read(path: Path, of: Bag | None = None, **options: str) -> list[float]:
    return rankings.score("from-file", MODEL, of or bag(), path=path, **options).scores.tolist()


def test_tiles_by_index_in_any_order(tmp_path: Path) -> None:
    path = write(tmp_path, "s2,0,9", "s1,2,0.5", "s1,0,-1e-3", "s1,1,7")
    assert read(path) == [-1e-3, 7, 0.5]


def test_index_means_the_feature_file_and_dropped_tiles_are_passed_over(tmp_path: Path) -> None:
    path = write(tmp_path, *[f"s1,{i},{i / 10}" for i in range(6)])
    assert read(path, bag(kept=[1, 3, 5], n_in_file=6)) == [0.1, 0.3, 0.5]


def test_tiles_by_corner(tmp_path: Path) -> None:
    lines = ("s1,0,256,3", "s1,0,0,1", "s1,256.0,0,2")
    path = write(tmp_path, *lines, header="slide_id,x,y,score")
    assert read(path) == [1, 2, 3]


def test_parquet_with_another_column(tmp_path: Path) -> None:
    path = tmp_path / "rankings.parquet"
    table = {"slide_id": ["s1", "s1", "s0", "s1"], "tile": [2, 1, 0, 0], "x": [5] * 4, "y": [5] * 4}
    pq.write_table(pa.table({**table, "lrp": [0.25, 2.0, 0.0, 1.0], "score": [0] * 4}), path)
    assert read(path, column="lrp") == [1.0, 2.0, 0.25]


def test_slide_names_that_look_like_numbers_stay_names(tmp_path: Path) -> None:
    path = tmp_path / "scores.parquet"
    pq.write_table(pa.table({"slide_id": [7, 7], "tile": [0, 1], "score": [1.0, 2.0]}), path)
    seven = Bag("7", features(2).float().numpy())
    assert read(path, seven) == [1.0, 2.0]


def test_a_file_is_read_once_until_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Path] = []
    inner = from_file.read_table

    def counting(path: Path, most_rows: int | None) -> object:
        calls.append(path)
        return inner(path, most_rows)

    monkeypatch.setattr(from_file, "read_table", counting)
    path = write(tmp_path, "s1,0,1", "s1,1,2", "s1,2,3")
    assert read(path) == read(path) == [1, 2, 3]
    assert len(calls) == 1
    write(tmp_path, "s1,0,1", "s1,1,2", "s1,2,4")
    assert read(path) == [1, 2, 4]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["s1,0,1", "s1,2,1"], r"scores.csv, slide s1: tile 1 has no score \(1 of 3 tiles"),
        (["s1,0,1", "s1,1,1", "s1,1,2"], r"slide s1: tile 1 occurs twice; keep one row per"),
        (["s1,0,1", "s1,1,nan", "s1,2,1"], r"slide s1: the score of tile 1 is NaN \(1 of 3"),
        (["s1,0,1", "s1,1,", "s1,2,1"], r"scores.csv, line 3: the cell 'score' is '', not a n"),
        (["s1,0,1", "s1,one,1"], r"scores.csv, line 3: the cell 'tile' is 'one', not a number"),
        (["s1,0,1", "s1,1.5,1"], r"slide s1: tile must be whole numbers; correct"),
        (["s1,0,1", "s1,inf,1"], r"slide s1: tile must be whole numbers; correct"),
        (["s1,0,1", "s1,1,1", "s1,2,1", "s1,3,1"], r"slide s1: tile 3 is none of the slide's 3"),
        (["s1,-1,1"], r"slide s1: tile -1 is none of the slide's 3 tiles; score the tiles of"),
        (["a,0,1", "b,0,1"], r"csv: has no slide 's1' \(2 slides\); use the slide names"),
        (["s11,0,1", "b,0,1"], r"scores.csv: has no slide 's1' \(2 slides\); did you mean 's11'"),
    ],
)
def test_refusals(tmp_path: Path, lines: list[str], message: str) -> None:
    with pytest.raises(FociError, match=message) as caught:
        read(write(tmp_path, *lines))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("slide,tile,score", r"has no column 'slide_id'"),
        ("slide_id,tile,attention", r"has no column 'score' .*, or name the column with column="),
        ("slide_id,x,score", r"has no column 'y' .*, or add a column 'tile'"),
    ],
)
def test_missing_columns(tmp_path: Path, header: str, message: str) -> None:
    with pytest.raises(FociError, match=message):
        read(write(tmp_path, "s1,0,1", header=header))


def test_a_prefiltered_bag_names_tiles_beyond_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, *[f"s1,{i},1" for i in range(8)])
    with pytest.raises(FociError, match=r"tile 6 is none of the slide's 6 tiles"):
        read(path, bag(kept=[1, 3, 5], n_in_file=6))


def test_corners_of_another_tiling(tmp_path: Path) -> None:
    lines = ("s1,0,0,1", "s1,256,0,2", "s1,0,256,3", "s1,512,0,4")
    path = write(tmp_path, *lines, header="slide_id,x,y,score")
    with pytest.raises(FociError, match=r"the tile at x=512, y=0 is none of the slide's 3 tiles"):
        read(path)
    with pytest.raises(FociError, match=r"names tiles by x and y, but the bag has no coordinates"):
        read(path, bag(coords=False))
    same = Bag("s1", features(2).float().numpy(), coords=np.zeros((2, 2), dtype=np.int64))
    with pytest.raises(FociError, match=r"but the bag has two tiles at the same place"):
        read(path, same)


def test_files_that_are_no_tables(tmp_path: Path) -> None:
    missing = tmp_path / "none.parquet"
    with pytest.raises(FociError, match=r"none.parquet: does not exist; give a"):
        read(missing)
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 not really")
    with pytest.raises(FociError, match=r"broken.parquet: cannot be read as a table of numbers"):
        read(broken)
    words = tmp_path / "words.parquet"
    pq.write_table(pa.table({"slide_id": ["s1"], "tile": [0], "score": ["high"]}), words)
    with pytest.raises(FociError, match=r"words.parquet: cannot be read as a table of numbers"):
        read(words)
    nothing = tmp_path / "nothing.parquet"
    pq.write_table(
        pq.read_table(words).slice(0, 0).set_column(2, "score", [pa.array([], "f8")]), nothing
    )
    with pytest.raises(FociError, match=r"nothing.parquet: has no rows; write one row per tile"):
        read(nothing)
    empty = tmp_path / "nulls.parquet"
    scores = pa.array([None, 1.0, 2.0], type=pa.float64())
    pq.write_table(pa.table({"slide_id": ["s1"] * 3, "tile": [0, 1, 2], "score": scores}), empty)
    with pytest.raises(FociError, match=r"slide s1: the score of tile 0 is NaN"):
        read(empty)
