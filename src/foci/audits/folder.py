"""Names of files and columns in an audit folder."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from pydantic import BaseModel, ValidationError

from foci.audits.settings import STORED
from foci.errors import FociError
from foci.files.bounds import read_json

FORMAT = 1
"""Of the folder; any other is refused."""

MANIFEST = "manifest.json"
SLIDES = "slides.parquet"
CURVES = "curves.parquet"
RANKINGS = "rankings.parquet"
SUMMARY = "summary.json"
TABLES = "tables"
TABLE_FILES = ("rankings.csv", "slides.csv", "deletion.csv", "agreement.csv", "skipped.csv")
SELECTORS = "selectors"
REPORT = "report.html"
PARTS = "parts"
"""Partial results of a run; removed once the files above are complete."""


def column(ranking: str, seed: int | None) -> str:
    """Name of a ranking with its seed, as in table columns and partial results.

    >>> column("native", None), column("selector", 2)
    ('native', 'selector-2')
    """
    return ranking if seed is None else f"{ranking}-{seed}"


def seed_folder(folder: Path, seed: int) -> Path:
    """Folder of the selector with this seed."""
    return folder / SELECTORS / f"seed-{seed}"


# Read files of an audit folder; a missing or damaged one raises a one-line error.


AGAIN = "run foci audit again with --force"
CHANGED = f"copy the folder again, {AGAIN}, or accept it with --accept-changed"

M = TypeVar("M", bound=BaseModel)


@contextlib.contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn errors from a missing or damaged file into one line that names the file."""
    try:
        yield
    except FociError:
        raise
    except FileNotFoundError:
        raise FociError(path, "is missing", AGAIN) from None
    except (IndexError, KeyError, OSError, TypeError, ValueError, pa.ArrowException) as error:
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise FociError(path, f"cannot be read ({why})", AGAIN) from None


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON file that holds an object."""
    with readable(path):
        content = read_json(path)
    if not isinstance(content, dict):
        raise FociError(path, "is damaged (no JSON object)", AGAIN)
    return content


def read_model(path: Path, model: type[M]) -> M:
    """Read a JSON file into a pydantic model; a mismatch raises a one-line error."""
    return as_model(path, model, read_object(path))


def as_model(path: Path, model: type[M], content: Mapping[str, Any]) -> M:
    """Validate the content of a JSON file as a pydantic model."""
    try:
        return model.model_validate(content, context=STORED)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        missing = first["type"] == "missing"
        what = f"says nothing of {where!r}" if missing else f"is damaged ({where}: {first['msg']})"
        raise FociError(path, what, AGAIN) from None


def lost_file(folder: Path, names: Iterable[str]) -> str | None:
    """The first of the named files that is missing from a folder; None if all are there."""
    return next((name for name in names if not (folder / name).is_file()), None)
