"""Remove what an audit wrote into its folder: by name, without following a link."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from foci.audits.folder.names import (
    CURVES,
    PARTS,
    RANKINGS,
    SELECTORS,
    SLIDES,
    SUMMARY,
    TABLE_FILES,
    TABLES,
)
from foci.errors import FociError
from foci.files.atomic import sweep
from foci.files.lock import LOCK
from foci.selectors import saved
from foci.slides import thumbnails

_REPORT = re.compile(
    r"report(-kappa-[0-9.e-]+)?(-relative)?(-k-[0-9]+)?(-prediction|-label)?\.html"
)
"""Report pages in the folder, including those at other settings than the audit's."""

_SEED = re.compile(r"seed-[0-9]+")
_PART = re.compile(r"[0-9]{5,}\.parquet")


def clear(folder: Path) -> None:
    """Remove the files that an audit writes, and no others.

    The manifest stays until it is replaced: without it, FOCI would not recognise its own folder.
    """
    sweep(folder, deep=True)
    remove_parts(folder)
    for name in (SLIDES, CURVES, RANKINGS, SUMMARY):
        (folder / name).unlink(missing_ok=True)
    for path in _entries(folder):
        if _REPORT.fullmatch(path.name):
            path.unlink(missing_ok=True)
    seeds = [path for path in _entries(folder / SELECTORS) if _SEED.fullmatch(path.name)]
    for place in seeds:
        _remove(place, saved.FILES)
    _remove(folder / SELECTORS, ())
    _remove(folder / TABLES, TABLE_FILES)
    pictures = folder / thumbnails.FOLDER
    shown = [path.name for path in _entries(pictures) if path.suffix == ".jpg"]
    _remove(pictures, [*shown, thumbnails.INDEX])


def remove_parts(folder: Path) -> None:
    """Remove the partial results of a run."""
    for place in _entries(folder / PARTS):
        _remove(place, [path.name for path in _entries(place) if _PART.fullmatch(path.name)])
    _remove(folder / PARTS, ())


def remove_locks(folder: Path) -> None:
    """Remove the locks that killed fits left in the folders of their seeds."""
    for place in _entries(folder / SELECTORS):
        if _SEED.fullmatch(place.name) and _own(place):
            (place / LOCK).unlink(missing_ok=True)


def check_no_links(folder: Path) -> None:
    """Refuse a folder in which a run would write through a link into another one."""
    for place in (folder / PARTS, folder / SELECTORS, folder / TABLES, folder / thumbnails.FOLDER):
        for path in (place, *_entries(place)):
            if path.is_symlink() and path.is_dir():
                what = "is a link to another folder"
                raise FociError(path, what, "remove the link, or choose another --out")


def _own(folder: Path) -> bool:
    return folder.is_dir() and not folder.is_symlink()


def _entries(folder: Path) -> Iterator[Path]:
    """What is in a folder; nothing if it is a link, or none."""
    return iter(sorted(folder.iterdir()) if _own(folder) else ())


def _remove(folder: Path, names: list[str] | tuple[str, ...]) -> None:
    """Remove these files of a folder, and the folder if nothing else is in it."""
    if not _own(folder):
        return
    for name in names:
        path = folder / name
        if path.is_symlink() or path.is_file():
            path.unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()
