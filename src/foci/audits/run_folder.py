"""The folder of a run: is it new, started or finished, whose is it, and what may be removed.

``run`` resumes in a folder whose manifest has the same key, that is a digest of everything that
decides the numbers. Files are removed by name, without following a link.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from foci.audits.folder import (
    CURVES,
    FORMAT,
    MANIFEST,
    PARTS,
    RANKINGS,
    SELECTORS,
    SLIDES,
    SUMMARY,
    TABLE_FILES,
    TABLES,
    lost_file,
    read_model,
)
from foci.audits.manifest import ManifestHead, first_difference
from foci.errors import FociError
from foci.files.atomic import TEMPORARY, sweep
from foci.files.hashes import check_format, digest
from foci.files.lock import LOCK, alone_in
from foci.files.run_log import LOG
from foci.selectors import saved
from foci.slides.find import INDEX, THUMBNAILS

State = Literal["new", "started", "finished"]

_REDO = "give --force to redo it, or another --out"
_REPORT = re.compile(
    r"report(-kappa-[0-9.e-]+)?(-relative)?(-k-[0-9]+)?(-prediction|-label)?\.html"
)
"""Report pages in the folder, including those at other settings than the audit's."""

_SEED = re.compile(r"seed-[0-9]+")
_PART = re.compile(r"[0-9]{5,}\.parquet")


def state_of(
    folder: Path, inputs: Mapping[str, Any], versions: Mapping[str, str], *, force: bool
) -> State:
    """Whether a folder is new, started or finished for this audit; refuse to mix two audits.

    Args:
        folder: The audit folder, existing or not.
        inputs: What decides the numbers, see :func:`foci.audits.manifest.run_inputs`.
        versions: Software versions, and the device.
        force: Treat the folder as new, even if it holds an audit.

    Raises:
        FociError: If the folder holds another audit or other files, or cannot be resumed.
    """
    head = _manifest(folder)
    if head is None or force:
        return "new"
    check_format(folder / MANIFEST, {"format": head.format}, FORMAT, _REDO)
    if head.key != digest(inputs):
        difference = first_difference(head.run_inputs, inputs)
        raise FociError(folder, f"holds an audit with {difference}", _REDO)
    if head.status == "complete":
        gone = lost_file(folder, head.files)
        if gone is not None:
            raise FociError(folder, f"holds an audit without its {gone}", "give --force")
        return "finished"
    for name, version in versions.items():
        first = head.versions.get(name)
        if first != version:
            what = f"holds an audit that was started with {name} {first}, this is {version}"
            raise FociError(folder, what, f"resume it with {first}, or {_REDO}")
    return "started"


@contextlib.contextmanager
def locked_run_folder(
    folder: Path, inputs: Mapping[str, Any], versions: Mapping[str, str], *, force: bool
) -> Iterator[State]:
    """Create, lock and clean up a folder for one run; yields its state, see :func:`state_of`.

    A run that is refused before its first results leaves nothing behind: its manifest would make
    the next run, with the mistake corrected, demand ``--force``. Slides that were computed and
    selectors that were fitted stay, with the manifest that they need.
    """
    existed = folder.exists()
    state_of(folder, inputs, versions, force=force)  # raises before anything is changed
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with alone_in(folder):
            state = state_of(folder, inputs, versions, force=force)
            check_no_links(folder)
            if state == "new":
                clear(folder)
            tidy(folder)
            try:
                yield state
            except FociError:
                fitted = (folder / SELECTORS).glob(f"*/{saved.METADATA}")
                if state == "new" and not (folder / PARTS).exists() and not any(fitted):
                    clear(folder)
                    for name in (MANIFEST, LOG):
                        (folder / name).unlink(missing_ok=True)
                raise
    except FociError:
        if not existed:
            with contextlib.suppress(OSError):  # it is not empty
                folder.rmdir()
        raise


def _manifest(folder: Path) -> ManifestHead | None:
    """Read the head of the folder's manifest; None if a new audit may start there."""
    if not folder.exists():
        return None
    if not folder.is_dir():
        raise FociError(folder, "is a file", "choose another --out")
    path = folder / MANIFEST
    if not path.is_file():
        names = (entry.name for entry in folder.iterdir())
        if all(name == LOCK or name.startswith(TEMPORARY) for name in names):
            return None
        raise FociError(folder, "is not empty and holds no audit", "choose another --out")
    with contextlib.suppress(FociError):
        head = read_model(path, ManifestHead)
        if head.key:
            return head
    raise FociError(path, "is not the manifest of an audit", "choose another --out")


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
    for place in _entries(folder / SELECTORS):
        if _SEED.fullmatch(place.name):
            _remove(place, saved.FILES)
    _remove(folder / SELECTORS, ())
    _remove(folder / TABLES, TABLE_FILES)
    pictures = folder / THUMBNAILS
    shown = [path.name for path in _entries(pictures) if path.suffix == ".jpg"]
    _remove(pictures, [*shown, INDEX])


def tidy(folder: Path) -> None:
    """Remove what killed runs, fits and reports left in a folder that is locked."""
    sweep(folder, deep=True)
    for place in _entries(folder / SELECTORS):
        if _SEED.fullmatch(place.name) and _own(place):
            (place / LOCK).unlink(missing_ok=True)


def remove_parts(folder: Path) -> None:
    """Remove the partial results of a run."""
    for place in _entries(folder / PARTS):
        _remove(place, [path.name for path in _entries(place) if _PART.fullmatch(path.name)])
    _remove(folder / PARTS, ())


def check_no_links(folder: Path) -> None:
    """Refuse a folder in which a run would write through a link into another one."""
    for place in (folder / PARTS, folder / SELECTORS, folder / TABLES, folder / THUMBNAILS):
        for path in (place, *_entries(place)):
            if path.is_symlink() and path.is_dir():
                what = "is a link to another folder"
                raise FociError(path, what, "remove the link, or choose another --out")


def _own(folder: Path) -> bool:
    return folder.is_dir() and not folder.is_symlink()


def _entries(folder: Path) -> list[Path]:
    """What is in a folder; nothing if it is a link, or none."""
    return sorted(folder.iterdir()) if _own(folder) else []


def _remove(folder: Path, names: Sequence[str]) -> None:
    """Remove these files of a folder, and the folder if nothing else is in it."""
    if not _own(folder):
        return
    for name in names:
        path = folder / name
        if path.is_symlink() or path.is_file():
            path.unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()
