"""Read the first sheet of an Excel workbook (.xlsx) as strings.

python-calamine parses the file. What is left for FOCI to do is to turn cells into strings, and to
refuse a file that would exhaust the memory: the parser holds a sheet as one dense block of cells,
however far apart the filled ones are.
"""

from __future__ import annotations

import re
import zlib
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from python_calamine import CalamineError, CalamineWorkbook

from foci.errors import CohortError

_LARGEST_PART = 512 * 1024**2
_MOST_COLUMNS = 16_384
_MOST_CELLS = 2**25
_EXACT = 2**53
"""Whole numbers below it are exact in a float, which is how Excel stores them."""

_DAMAGE = (BadZipFile, CalamineError, EOFError, RuntimeError, ValueError, zlib.error)
_REFERENCE = re.compile(rb"""<(?:\w+:)?(?:c|row)\s[^<]*?\br\s*=\s*["']([A-Za-z]*)(\d+)""")
"""Where a row (``7``) or a cell (``AB7``) says it is."""


def read_first_sheet(path: Path) -> list[tuple[int, list[str]]]:
    """Row number and cells of every row with content; cells left empty are ``""``.

    Text is taken as it is (leading zeros survive), whole numbers lose a trailing ``.0``, dates are
    in ISO format, error values such as ``#N/A`` count as empty.

    Raises:
        CohortError: If the file is no workbook.
    """
    try:
        _check_size(path)
        with CalamineWorkbook.from_path(path) as workbook:
            rows = workbook.get_sheet_by_index(0).to_python(skip_empty_area=False)
    except _DAMAGE as error:
        raise CohortError(
            path,
            "is not a readable .xlsx workbook (damaged, an old .xls, or under a password)",
            "open it and save it as .xlsx or .csv",
        ) from error
    sheet = ((number, _up_to_last_filled(row)) for number, row in enumerate(rows, start=1))
    return [(number, cells) for number, cells in sheet if cells]


def _check_size(path: Path) -> None:
    """Refuse archives and sheets that would not fit into memory.

    Every part is unpacked, so that an archive that lies about its sizes fails its checksum here.
    """
    with ZipFile(path) as archive:
        for part in archive.infolist():
            if part.file_size > _LARGEST_PART:
                raise ValueError(f"{part.filename} is too large")
            places = _REFERENCE.findall(archive.read(part))
            columns = max(
                (_column(letters) for letters in {place[0] for place in places}), default=0
            )
            rows = max((int(number[:9]) for _, number in places), default=0)
            if columns > _MOST_COLUMNS or rows * columns > _MOST_CELLS:
                raise ValueError(f"{part.filename} has too many cells")


def _column(letters: bytes) -> int:
    """Number of a column, counted from 1: 28 for ``AB``; 1 if a cell does not name it.

    >>> _column(b"AB")
    28
    """
    column = 0
    for letter in letters.upper()[:8]:
        column = 26 * column + letter - ord("A") + 1
    return max(1, column)


def _up_to_last_filled(row: list[Any]) -> list[str]:
    cells = [_text(value) for value in row]
    while cells and not cells[-1]:
        cells.pop()
    return cells


def _text(value: Any) -> str:
    """A cell as text; whole numbers without decimals or exponent.

    >>> [_text(value) for value in (3.0, 1.2e3, 0.25, "007", True, "")]
    ['3', '1200', '0.25', '007', 'TRUE', '']
    """
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return str(int(value))
    return str(value)
