"""The first sheet of an Excel workbook, as strings.

An ``.xlsx`` is a zip of XML parts; what a label table needs of it is small: which sheet comes
first, the strings that sheets share, and the cells.
"""

from __future__ import annotations

import posixpath
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree
from zipfile import BadZipFile, ZipFile

from foci.errors import CohortError

_LARGEST_PART = 512 * 1024**2
_WORKBOOK, _RELATIONS, _STRINGS = (
    "xl/workbook.xml",
    "xl/_rels/workbook.xml.rels",
    "xl/sharedStrings.xml",
)
_DAMAGE = (
    BadZipFile,
    ElementTree.ParseError,
    EOFError,
    LookupError,
    RuntimeError,
    ValueError,
    zlib.error,
)
_MOST_COLUMNS = 16_384
_RELATION_ID = re.compile(r"\{[^}]*/relationships\}id")


def read_first_sheet(path: Path) -> list[tuple[int, list[str]]]:
    """Row number and cells of every stored row; cells left empty are ``""``.

    Text is taken as it is (leading zeros survive), whole numbers lose a trailing ``.0``, error
    values such as ``#N/A`` count as empty.

    Raises:
        CohortError: If the file is no workbook.
    """
    try:
        with ZipFile(path) as archive:
            sheet = _part(archive, _first_sheet(archive))
            has_strings = _STRINGS in archive.namelist()
            strings = _shared_strings(_part(archive, _STRINGS)) if has_strings else []
        return list(_rows(sheet, strings))
    except _DAMAGE as error:
        raise CohortError(
            path,
            "is not a readable .xlsx workbook (damaged, an old .xls, or under a password)",
            "open it and save it as .xlsx or .csv",
        ) from error


def _part(archive: ZipFile, name: str) -> ElementTree.Element:
    if archive.getinfo(name).file_size > _LARGEST_PART:
        raise ValueError(f"{name} is too large")
    content = archive.read(name)
    # A document type is where entity attacks live, and no spreadsheet program writes one.
    if b"<!DOCTYPE" in content:
        raise ValueError(f"{name} declares a document type")
    return ElementTree.fromstring(content)  # noqa: S314


def _first_sheet(archive: ZipFile) -> str:
    sheet = _part(archive, _WORKBOOK).find("{*}sheets/{*}sheet")
    if sheet is None:
        raise ValueError("no sheet")
    wanted = [value for key, value in sheet.attrib.items() if _RELATION_ID.fullmatch(key)]
    for relation in _part(archive, _RELATIONS).iterfind("{*}Relationship"):
        if relation.attrib["Id"] in wanted:
            return posixpath.join("/xl", relation.attrib["Target"]).lstrip("/")
    raise ValueError("the first sheet is not in the archive")


def _shared_strings(root: ElementTree.Element) -> list[str]:
    return [_text(item) for item in root.iterfind("{*}si")]


def _text(item: ElementTree.Element) -> str:
    """Plain text, or the runs of rich text; reading aids (``rPh``) are not part of it."""
    parts = (*item.iterfind("{*}t"), *item.iterfind("{*}r/{*}t"))
    return "".join(part.text or "" for part in parts)


def _rows(sheet: ElementTree.Element, strings: list[str]) -> Iterator[tuple[int, list[str]]]:
    number = 0
    for row in sheet.iterfind("{*}sheetData/{*}row"):
        number = int(row.get("r", number + 1))
        cells: list[str] = []
        for cell in row.iterfind("{*}c"):
            column = _column(cell.get("r"), len(cells))
            cells.extend([""] * (column - len(cells)))
            cells.append(_value(cell, strings))
        yield number, cells


def _column(reference: str | None, following: int) -> int:
    """Zero-based column of a reference such as ``AB12``."""
    if reference is None:
        return following
    column = 0
    for letter in reference.rstrip("0123456789"):
        column = 26 * column + ord(letter) - ord("A") + 1
    if not 0 < column <= _MOST_COLUMNS:
        raise ValueError(f"no column {reference}")
    return column - 1


def _value(cell: ElementTree.Element, strings: list[str]) -> str:
    kind = cell.get("t", "n")
    if kind == "inlineStr":
        inline = cell.find("{*}is")
        return "" if inline is None else _text(inline)
    text = cell.findtext("{*}v") or ""
    if kind == "s":
        return strings[int(text)] if text else ""
    if kind == "b":
        return "TRUE" if text == "1" else "FALSE"
    if kind == "e":
        return ""
    return _number(text) if kind == "n" else text


def _number(text: str) -> str:
    """A number as written; whole ones without decimals or exponent.

    >>> [_number(text) for text in ("3.0", "1.2E3", "0.25", "17", "")]
    ['3', '1200', '0.25', '17', '']
    """
    if not text or text.isdecimal():
        return text
    value = float(text)
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else text
