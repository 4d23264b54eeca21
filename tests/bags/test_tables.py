"""Tables: every cell is a string, and what is no table is refused with its line."""

import re
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foci.bags.tables import read_first_sheet, read_table, write_csv
from foci.errors import CohortError
from foci.words import csv_cell, from_csv_cell
from tests.bags import refused
from tests.makers.workbooks import text_row, workbook


def write(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("name", "text", "row"),
    [
        ("a.csv", "slide_id,label\n007,1.0\n", {"slide_id": "007", "label": "1.0"}),
        ("b.csv", "slide_id;label\n007;1.0\n", {"slide_id": "007", "label": "1.0"}),
        ("c.csv", "slide_id\tlabel\n007\t1.0\n", {"slide_id": "007", "label": "1.0"}),
        ("d.tsv", "slide_id\tlabel\n007\t1.0\n", {"slide_id": "007", "label": "1.0"}),
        ("tab whatever commas.TXT", "a,b\tc\n1,2\t3\n", {"a,b": "1,2", "c": "3"}),
        ("quoted.csv", '"a,b,c,d";e\n1;"2;3"\n', {"a,b,c,d": "1", "e": "2;3"}),
        ("utf16.txt", "id\tname\n1\tMüller\n".encode("utf-16"), {"id": "1", "name": "Müller"}),
    ],
)
def test_delimiters_and_leading_zeros(
    tmp_path: Path, name: str, text: str | bytes, row: dict[str, str]
) -> None:
    table = read_table(write(tmp_path, name, text))
    assert (table.columns, table.rows) == (tuple(row), [row])
    assert table.path == tmp_path / name


def test_byte_order_mark_blank_lines_and_line_numbers(tmp_path: Path) -> None:
    text = b'\xef\xbb\xbfid,note\r\n\r\n1,"two\r\nlines"\r\n 2 , x \r\n,\r\n\r\n'
    table = read_table(write(tmp_path, "a.csv", text))
    assert table.rows == [{"id": "1", "note": "two\r\nlines"}, {"id": "2", "note": "x"}]
    assert [table.line(0), table.line(1)] == [
        f"{table.path}, line 4",
        f"{table.path}, line 5",
    ]


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
    with refused(message) as caught:
        read_table(path)
    assert name in str(caught.value)


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with refused(r"none.csv: does not exist; give a .csv"):
        read_table(tmp_path / "none.csv")
    with refused("is a folder, not a table"):
        read_table(tmp_path)


def test_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "a.csv", "a\n1\n")

    def refuse(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with refused(r"a\.csv: cannot be read \(Permission denied\); check"):
        read_table(path)


def test_missing_column_suggests_the_nearest(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, "a.csv", "slide_ids,x\n1,2\n"))
    table.require("x")
    what = "has no column 'slide_id' (its columns: slide_ids, x); rename 'slide_ids' to 'slide_id'"
    with refused(re.escape(what)):
        table.require("x", "slide_id")
    with refused("; add or rename the column, or give another file"):
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
    with refused(r"cannot be written \(.*\); check the folder's rights"):
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


# Excel workbooks: cells as strings, and files that are refused.


def test_every_kind_of_cell(tmp_path: Path) -> None:
    strings = (
        "<si><t>007</t></si>"
        '<si><r><t>LU</t></r><r><rPr/><t xml:space="preserve">AD </t></r>'
        "<rPh><t>aid</t></rPh></si>"
    )
    rows = (
        '<row r="2"><c r="A2" t="s"><v>0</v></c><c r="B2" t="s"><v>1</v></c></row>'
        '<row r="5"><c r="A5"><v>3.0</v></c><c r="C5"><v>0.25</v></c>'
        '<c r="D5" t="b"><v>1</v></c><c r="E5" t="e"><v>#N/A</v></c>'
        '<c r="F5" t="str"><f>A5</f><v>made</v></c><c r="G5" t="inlineStr"><is><t>in</t></is></c>'
        '<c r="AB5"><v>1.5E+3</v></c></row>'
    )
    sheet = read_first_sheet(workbook(tmp_path / "a.xlsx", rows, strings))
    assert sheet[0] == (2, ["007", "LUAD "])
    number, cells = sheet[1]
    assert number == 5
    assert cells[:7] == ["3", "", "0.25", "TRUE", "", "made", "in"]
    assert cells[7:] == [""] * 20 + ["1500"]


def test_references_may_be_missing_and_targets_absolute(tmp_path: Path) -> None:
    rows = "<row><c><v>1</v></c><c/><c><v>2</v></c></row><row><c><v>3</v></c></row>"
    path = workbook(tmp_path / "a.xlsx", rows, target="/xl/worksheets/sheet7.xml")
    assert read_first_sheet(path) == [(1, ["1", "", "2"]), (2, ["3"])]


@pytest.mark.parametrize(
    "rows",
    [
        '<row><c t="s"><v>9</v></c></row>',
        '<row><c r="ZZZZZ1"><v>9</v></c></row>',
        "<row><c>",
        '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"/></row>',
        '<row r="99999999999"><c><v>1</v></c></row>',
    ],
)
def test_damage_is_refused_in_one_line(tmp_path: Path, rows: str) -> None:
    path = workbook(tmp_path / "a.xlsx", rows)
    with refused(r"a\.xlsx: is not a readable \.xlsx workbook .*; open"):
        read_first_sheet(path)


def test_text_in_a_cell_of_numbers_stays_text(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", "<row><c><v>many</v></c></row>")
    assert read_first_sheet(path) == [(1, ["many"])]


def test_dates_are_in_iso_format(tmp_path: Path) -> None:
    rows = '<row><c s="1"><v>45000</v></c><c s="1"><v>45000.25</v></c><c s="2"><v>0.5</v></c></row>'
    path = workbook(tmp_path / "a.xlsx", rows)
    with ZipFile(path, "a") as archive:  # number formats 14 (a date) and 9 (per cent)
        archive.writestr(
            "xl/styles.xml",
            "<styleSheet><cellXfs>"
            '<xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="9"/>'
            "</cellXfs></styleSheet>",
        )
    assert read_first_sheet(path) == [(1, ["2023-03-15", "2023-03-15 06:00:00", "0.5"])]


def test_a_small_archive_that_unpacks_to_a_huge_part_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foci.bags.tables._LARGEST_PART", 1024**2)
    path = workbook(tmp_path / "bomb.xlsx", text_row(1, "a"))
    assert read_first_sheet(path) == [(1, ["a"])]
    with ZipFile(path, "a", ZIP_DEFLATED) as archive:
        archive.writestr("xl/media/image1.png", bytes(1024**2 + 1))
    assert path.stat().st_size < 10_000
    with refused("is not a readable") as refusal:
        read_first_sheet(path)
    assert "too large" in str(refusal.value.__cause__)


def test_an_archive_that_lies_about_its_sizes_is_refused(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", text_row(1, "a" * 1000))
    content, size = path.read_bytes(), ZipFile(path).getinfo("xl/worksheets/sheet7.xml").file_size
    assert content.count(size.to_bytes(4, "little")) == 4  # packed and unpacked, stored twice
    path.write_bytes(content.replace(size.to_bytes(4, "little"), (9).to_bytes(4, "little")))
    with refused("is not a readable"):
        read_first_sheet(path)


def test_what_is_no_workbook_is_refused(tmp_path: Path) -> None:
    text = write(tmp_path, "text.xlsx", "slide_id,label\n")
    entity, bare = tmp_path / "entity.xlsx", tmp_path / "bare.xlsx"
    for path, content in (
        (entity, "<!DOCTYPE x [<!ENTITY e 'e'>]><workbook>&e;</workbook>"),
        (bare, "<workbook/>"),
    ):
        with ZipFile(path, "w") as file:
            file.writestr("xl/workbook.xml", content)
    lost = workbook(tmp_path / "b.xlsx", text_row(1, "a"), target="worksheets/none.xml")
    for path in (text, entity, bare, lost):
        with refused(r"is not a readable .*damaged, an old .xls, or under a password"):
            read_first_sheet(path)


@pytest.mark.parametrize(("ending", "sign"), [(".csv", ","), (".tsv", "\t")])
def test_a_table_of_a_million_is_refused_at_once(tmp_path: Path, ending: str, sign: str) -> None:
    wide = sign.join(f"c{i}" for i in range(1_000_000))  # to count each of them took minutes
    with pytest.raises(CohortError, match=r"has 1000000 columns; leave at most 16384"):
        read_table(write(tmp_path, f"wide{ending}", f"{wide}\n{wide}\n"))
    long = write(tmp_path, f"long{ending}", "slide_id\n" + "s\n" * 100_001)
    with pytest.raises(CohortError, match="has 100001 rows, more than the 100000 slides"):
        read_table(long)
    assert len(read_table(long, None).rows) == 100_001


def test_formulas_are_written_as_text_and_read_as_they_were(tmp_path: Path) -> None:
    names = ["=1+1", "+a", "-a", "@SUM(A1)", "'quoted", "'=x", "-0.5", "+1e3", "plain", "a=b"]
    write_csv(tmp_path / "a.csv", ["name"], [{"name": name} for name in names])
    assert (tmp_path / "a.csv").read_text().splitlines()[1:] == [
        "'=1+1", "'+a", "'-a", "'@SUM(A1)", "''quoted", "''=x", "-0.5", "+1e3", "plain", "a=b",
    ]  # fmt: skip
    assert [row["name"] for row in read_table(tmp_path / "a.csv").rows] == names
    assert [from_csv_cell(csv_cell(text)) for text in ("\t=x", "\rx", *names)] == [
        "\t=x", "\rx", *names,
    ]  # fmt: skip
