"""Read CSV, TSV and Excel tables; every cell is a string.

Slide names can look like numbers, so nothing is ever converted: ``007`` stays ``007``.
"""

from __future__ import annotations

import csv
import difflib
import io
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from python_calamine import CalamineError, CalamineWorkbook

from foci.errors import CohortError
from foci.files.atomic import write_whole
from foci.words import csv_text, from_csv_cell

MOST_SLIDES = 100_000
"""Rows of a table of slides; more would be matched to files for minutes."""

_DELIMITERS = {".csv": ",;\t", ".tsv": "\t", ".txt": "\t"}


@dataclass(frozen=True)
class Table:
    """Header and rows of one file.

    Attributes:
        columns: Column names, in file order.
        rows: One dictionary per row, keyed by column.
        path: The file.
        lines: Line of the file (row of the sheet) at which each row ends.
    """

    columns: tuple[str, ...]
    rows: list[dict[str, str]]
    path: Path
    lines: tuple[int, ...]

    def line(self, index: int) -> str:
        """Where row ``index`` stands, for messages: ``labels.csv, line 7``."""
        return f"{self.path}, line {self.lines[index]}"

    def filled(self, column: str) -> list[str]:
        """The values of a column; an empty cell is refused."""
        values = [row[column] for row in self.rows]
        for index, value in enumerate(values):
            if not value:
                what = f"the cell {column!r} is empty"
                raise CohortError(self.line(index), what, "fill it or delete the row")
        return values

    def unique(self, values: list[str], kind: str = "slide") -> list[str]:
        """The same values, one per row; a duplicate is refused."""
        first: dict[str, int] = {}
        for index, value in enumerate(values):
            if value in first:
                what = f"{kind} {value!r} is already in line {self.lines[first[value]]}"
                raise CohortError(self.line(index), what, "keep one of the rows")
            first[value] = index
        return values

    def require(self, *names: str, fix: str = "") -> None:
        """Refuse a table without one of these columns; ``fix`` is what helps besides renaming."""
        for name in names:
            if name not in self.columns:
                what = f"has no column {name!r} (its columns: {', '.join(self.columns)})"
                near = nearest(name, self.columns)
                hint = f"rename {near!r} to {name!r}" if near else "add or rename the column"
                raise CohortError(self.path, what, f"{hint}, or {fix}" if fix else hint)


def nearest(name: str, columns: Iterable[str], likeness: float = 0.6) -> str | None:
    """The most similar column name, ignoring case and punctuation; None if none is close.

    >>> nearest("slide_id", ("Case", "SLIDE ID"))
    'SLIDE ID'
    >>> nearest("slide_id", ("image", "class")) is None
    True
    """
    plain = {_letters(column): column for column in columns}
    near = difflib.get_close_matches(_letters(name), plain, n=1, cutoff=likeness)
    return plain[near[0]] if near else None


def _letters(column: str) -> str:
    return re.sub(r"[\W_]", "", column.lower())


def read_table(path: str | Path, most_rows: int | None = MOST_SLIDES) -> Table:
    """Read ``.csv`` (comma, semicolon or TAB), ``.tsv`` and ``.txt`` (TAB), or ``.xlsx``.

    Cells are stripped of surrounding whitespace, and rows without any content are skipped.

    Raises:
        CohortError: If the file cannot be read, a row has more or fewer cells than the header, or
            two columns have the same name; with the line. Also if it has more rows or columns than
            any table of slides.
    """
    path = Path(path)
    if not path.is_file():
        what = "is a folder, not a table" if path.is_dir() else "does not exist"
        raise CohortError(path, what, "give a .csv, .tsv, .txt or .xlsx file")
    suffix = path.suffix.lower()
    try:
        if suffix == ".xlsx":
            return _assemble(path, read_first_sheet(path), most_rows, ragged_ends=True)
        if suffix in _DELIMITERS:
            return _assemble(path, _split(path, _decode(path), _DELIMITERS[suffix]), most_rows)
    except OSError as error:
        what = f"cannot be read ({error.strerror or error})"
        raise CohortError(path, what, "check the file's rights and the disk") from error
    known = ".csv, .tsv, .txt (TAB) or .xlsx"
    raise CohortError(path, f"has the unknown ending {suffix!r}", f"save it as {known}")


def write_csv(
    path: str | Path, columns: Sequence[str], rows: Iterable[Mapping[str, str | None]]
) -> None:
    """Write a CSV atomically; missing values and None become empty cells, see :func:`csv_text`."""
    path = Path(path)
    text = csv_text([columns, *([row.get(name) for name in columns] for row in rows)])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
    except OSError as error:
        reason = error.strerror or str(error)
        fix = "check the folder's rights and the free space"
        raise CohortError(path, f"cannot be written ({reason})", fix) from error


def _decode(path: Path) -> str:
    """UTF-8 with or without a byte order mark, or the UTF-16 of Excel's "Unicode text"."""
    content = path.read_bytes()
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        where = f"{path}, line {line}"
        raise CohortError(where, "is not UTF-8 text", "save the table as UTF-8 CSV") from None


def _split(path: Path, text: str, delimiters: str) -> list[tuple[int, list[str]]]:
    # csv.Sniffer guesses from the content too and takes letters of slide names for delimiters.
    header = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = max(delimiters, key=re.sub('"[^"]*"', "", header).count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        return [(reader.line_num, cells) for cells in reader]
    except csv.Error as error:
        what = f"is not a well-formed table ({error})"
        where = f"{path}, line {reader.line_num}"
        raise CohortError(where, what, "look for a stray quotation mark") from error


def _assemble(
    path: Path,
    lines: Sequence[tuple[int, list[str]]],
    most_rows: int | None,
    *,
    ragged_ends: bool = False,
) -> Table:
    """The first line with content is the header; a sheet leaves out empty cells at a row's end."""
    if most_rows is not None and len(lines) > most_rows + 1:
        what = f"has {len(lines) - 1} rows, more than the {most_rows} slides that a cohort may have"
        raise CohortError(path, what, "give a table of slides, one row each")
    stripped = [(n, [from_csv_cell(cell).strip() for cell in cells]) for n, cells in lines]
    filled = [(number, cells) for number, cells in stripped if any(cells)]
    if len(filled) < 2:
        what = "has a header but no rows" if filled else "is empty"
        raise CohortError(path, what, "check that the right file was given")
    (first, columns), *body = filled
    while not columns[-1]:
        columns.pop()
    if len(columns) > _MOST_COLUMNS:
        raise CohortError(path, f"has {len(columns)} columns", f"leave at most {_MOST_COLUMNS}")
    seen: set[str] = set()
    for name in columns:
        if name in seen:
            what = f"two columns are called {name!r}"
            raise CohortError(f"{path}, line {first}", what, "rename or remove one")
        seen.add(name)
    rows = []
    for number, cells in body:
        short, rest = len(columns) - len(cells), cells[len(columns) :]
        if any(rest) or (short > 0 and not ragged_ends):
            what = f"has {len(cells)} cells where the header has {len(columns)}"
            fix = "look for a missing or extra delimiter"
            raise CohortError(f"{path}, line {number}", what, fix)
        rows.append(dict(zip(columns, [*cells, *[""] * short], strict=False)))
    return Table(tuple(columns), rows, path, tuple(number for number, _ in body))


# Excel workbooks. python-calamine parses the file. What is left for FOCI to do is to turn cells
# into strings, and to refuse a file that would exhaust the memory: the parser holds a sheet as one
# dense block of cells, however far apart the filled ones are.

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
    sheet = []
    for number, row in enumerate(rows, start=1):
        cells = [_text(value) for value in row]
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            sheet.append((number, cells))
    return sheet


def _check_size(path: Path) -> None:
    """Refuse archives and sheets that would not fit into memory.

    Every part is unpacked, so that an archive that lies about its sizes fails its checksum here.
    """
    with ZipFile(path) as archive:
        for part in archive.infolist():
            if part.file_size > _LARGEST_PART:
                raise ValueError(f"{part.filename} is too large")
            places = _REFERENCE.findall(archive.read(part))
            columns = max(map(_column, {letters for letters, _ in places}), default=0)
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
