"""Excel workbooks: cells as strings, and files that are refused."""

from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from foci.bags.tables import read_first_sheet
from foci.errors import CohortError
from tests.makers.workbooks import text_row, workbook


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
    with pytest.raises(CohortError, match=r"a\.xlsx: is not a readable \.xlsx workbook .*; open"):
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
    with pytest.raises(CohortError, match="is not a readable") as refusal:
        read_first_sheet(path)
    assert "too large" in str(refusal.value.__cause__)


def test_an_archive_that_lies_about_its_sizes_is_refused(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", text_row(1, "a" * 1000))
    content, size = path.read_bytes(), ZipFile(path).getinfo("xl/worksheets/sheet7.xml").file_size
    assert content.count(size.to_bytes(4, "little")) == 4  # packed and unpacked, stored twice
    path.write_bytes(content.replace(size.to_bytes(4, "little"), (9).to_bytes(4, "little")))
    with pytest.raises(CohortError, match="is not a readable"):
        read_first_sheet(path)


def test_what_is_no_workbook_is_refused(tmp_path: Path) -> None:
    text, archive = tmp_path / "text.xlsx", tmp_path / "zip.xlsx"
    text.write_text("slide_id,label\n")
    with ZipFile(archive, "w") as file:
        file.writestr("xl/workbook.xml", "<!DOCTYPE x [<!ENTITY e 'e'>]><workbook>&e;</workbook>")
    for path in (text, archive):
        with pytest.raises(CohortError, match=r"damaged, an old .xls, or under a password"):
            read_first_sheet(path)


def test_a_workbook_without_sheets_is_refused(tmp_path: Path) -> None:
    with ZipFile(tmp_path / "a.xlsx", "w") as file:
        file.writestr("xl/workbook.xml", "<workbook/>")
    with pytest.raises(CohortError, match="is not a readable"):
        read_first_sheet(tmp_path / "a.xlsx")
    bad = workbook(tmp_path / "b.xlsx", text_row(1, "a"), target="worksheets/none.xml")
    with pytest.raises(CohortError, match="is not a readable"):
        read_first_sheet(bad)
