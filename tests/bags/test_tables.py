"""Reading and writing tables of strings."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foci.bags.tables import read_table, write_csv
from foci.errors import CohortError
from tests.makers.workbooks import text_row, workbook


def write(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("name", "mark"), [("a.csv", ","), ("b.csv", ";"), ("c.csv", "\t"), ("d.tsv", "\t")]
)
def test_delimiters_and_leading_zeros(tmp_path: Path, name: str, mark: str) -> None:
    text = f"slide_id{mark}label\n007{mark}1.0\n"
    table = read_table(write(tmp_path, name, text))
    assert table.columns == ("slide_id", "label")
    assert table.rows == [{"slide_id": "007", "label": "1.0"}]
    assert table.path == tmp_path / name


def test_txt_is_tab_whatever_commas_it_holds(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, "a.TXT", "a,b\tc\n1,2\t3\n"))
    assert table.rows == [{"a,b": "1,2", "c": "3"}]


def test_quoted_delimiters_do_not_count(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, "a.csv", '"a,b,c,d";e\n1;"2;3"\n'))
    assert table.rows == [{"a,b,c,d": "1", "e": "2;3"}]


def test_byte_order_mark_blank_lines_and_line_numbers(tmp_path: Path) -> None:
    text = b'\xef\xbb\xbfid,note\r\n\r\n1,"two\r\nlines"\r\n 2 , x \r\n,\r\n\r\n'
    table = read_table(write(tmp_path, "a.csv", text))
    assert table.rows == [{"id": "1", "note": "two\r\nlines"}, {"id": "2", "note": "x"}]
    assert [table.line(0), table.line(1)] == [
        f"{table.path}, line 4",
        f"{table.path}, line 5",
    ]


def test_utf16_of_excel(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", "id\tname\n1\tMüller\n".encode("utf-16"))
    assert read_table(path).rows == [{"id": "1", "name": "Müller"}]


def test_index_column_without_a_name_and_empty_columns_at_the_end(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, "a.csv", ",train,test,,\n0,a,b,,\n1,c,,,\n"))
    assert table.columns == ("", "train", "test")
    assert table.rows[1] == {"": "1", "train": "c", "test": ""}


def test_excel_sheet(tmp_path: Path) -> None:
    rows = text_row(1, "PATIENT", "label") + text_row(3, "007", "a") + text_row(4, "008")
    table = read_table(workbook(tmp_path / "a.xlsx", rows))
    assert table.rows == [{"PATIENT": "007", "label": "a"}, {"PATIENT": "008", "label": ""}]
    assert table.lines == (3, 4)


REFUSED: dict[str, tuple[str | bytes, str]] = {
    "twice.csv": ("a,b,a\n1,2,3\n", "line 1: two columns are called 'a'; rename or remove one"),
    "short.csv": ("a,b\n1,2\n3\n", "line 3: has 1 cells where the header has 2; look for a miss"),
    "long.tsv": ("a\tb\n1\t2\t3\n", "line 2: has 3 cells where the header has 2"),
    "quote.csv": ('a,b\n1,2\n"3,4\n5,6\n', "line 4: is not a well-formed table .* quotation mark"),
    "empty.csv": ("\n\n", "empty.csv: is empty; check that the right file was given"),
    "header.csv": ("a,b\n", "has a header but no rows"),
    "latin.csv": (b"a,b\n1,M\xfcller\n", "line 2: is not UTF-8 text; save the table as UTF-8 CSV"),
    "old.xls": ("x", "has the unknown ending '.xls'; save it as .csv, .tsv, .txt"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_file_and_line(tmp_path: Path, name: str) -> None:
    text, message = REFUSED[name]
    path = write(tmp_path, name, text)
    with pytest.raises(CohortError, match=message) as caught:
        read_table(path)
    assert name in str(caught.value)


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(CohortError, match=r"none.csv: does not exist; give a .csv"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(CohortError, match="is a folder, not a table"):
        read_table(tmp_path)


def test_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "a.csv", "a\n1\n")

    def refuse(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(CohortError, match=r"a\.csv: cannot be read \(Permission denied\); check"):
        read_table(path)


def test_missing_column_suggests_the_nearest(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, "a.csv", "slide_ids,x\n1,2\n"))
    table.require("x")
    what = "has no column 'slide_id' (its columns: slide_ids, x); rename 'slide_ids' to 'slide_id'"
    with pytest.raises(CohortError, match=re.escape(what)):
        table.require("x", "slide_id")
    with pytest.raises(CohortError, match="; add or rename the column, or give another file"):
        table.require("label", fix="give another file")


def test_write_replaces_the_whole_file_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "new" / "cohort.csv"
    write_csv(path, ["slide_id", "site"], [{"slide_id": "007", "site": None}, {"slide_id": "a,b"}])
    assert path.read_text() == 'slide_id,site\n007,\n"a,b",\n'

    def breaks() -> Iterator[dict[str, str]]:
        yield {"slide_id": "1"}
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        write_csv(path, ["slide_id"], breaks())
    assert path.read_text().startswith("slide_id,site\n007,")
    assert list(path.parent.iterdir()) == [path]


def test_write_where_nothing_can_be_written(tmp_path: Path) -> None:
    with pytest.raises(CohortError, match=r"cannot be written \(.*\); check the folder's rights"):
        write_csv(tmp_path, ["a"], [])
    assert list(tmp_path.parent.glob(f".{tmp_path.name}.*")) == []


def test_written_files_have_ordinary_rights(tmp_path: Path) -> None:
    write_csv(tmp_path / "a.csv", ["a"], [{"a": "1"}])
    (tmp_path / "b.csv").touch()
    assert (tmp_path / "a.csv").stat().st_mode == (tmp_path / "b.csv").stat().st_mode


cells = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from(',;"\t\n'))


@settings(deadline=None, max_examples=50)
@given(rows=st.lists(st.tuples(st.just("id"), cells, cells), min_size=1))
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str]]
) -> None:
    path = tmp_path_factory.mktemp("tables") / "a.csv"
    columns = ("slide_id", "label", "site")
    write_csv(path, columns, [dict(zip(columns, row, strict=True)) for row in rows])
    want = [[cell.strip() for cell in row] for row in rows]
    assert [list(row.values()) for row in read_table(path).rows] == want
