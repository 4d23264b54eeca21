"""Atomic writes: a file or folder appears complete or not at all."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from foci.files.lock import lock, still_there

TEMPORARY = ".writing-"
"""Prefix of temporary names, which a killed process may leave behind."""

_TEMPORARY_NAME = re.compile(re.escape(TEMPORARY) + r"[a-z0-9_]+")


def write_whole(path: str | Path, content: bytes | str, *, durable: bool = True) -> None:
    """Write a file atomically, text as UTF-8; see :func:`whole_file`."""
    with whole_file(path, durable=durable) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


@contextlib.contextmanager
def whole_file(path: str | Path, *, durable: bool = True) -> Iterator[Path]:
    """Temporary file beside ``path`` that replaces it when the block ends without an error.

    After an error the old file is still there. The temporary file is locked while its writer lives,
    so that :func:`sweep` leaves it alone.

    Args:
        path: Final name; a file already there is replaced.
        durable: Also force the content to disk, so that a power cut leaves the old or the new file.
    """
    path = Path(path)
    with _named(path):
        temporary, handle = _temporary(path.parent)
        try:
            yield temporary
            if durable:
                os.fsync(handle)
            temporary.chmod(0o666 & ~_umask())
            if sys.platform == "win32":  # which cannot rename an open file
                os.close(handle)
                handle = -1
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        finally:
            if handle >= 0:
                os.close(handle)


@contextlib.contextmanager
def whole_folder(path: str | Path) -> Iterator[Path]:
    """Temporary folder that is renamed to ``path`` when the block ends without an error."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f"{TEMPORARY}{path.name}-"))
    try:
        yield temporary
        temporary.chmod(0o777 & ~_umask())
        temporary.rename(path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def sweep(folder: Path, *, deep: bool = False) -> None:
    """Delete the temporary files of killed processes in a folder, with ``deep`` also below it.

    A file whose writer lives is left alone, and no link is followed.
    """
    for place, folders, names in os.walk(folder):
        for name in filter(_TEMPORARY_NAME.fullmatch, names):
            with contextlib.suppress(OSError):
                _remove_if_abandoned(Path(place, name))
        if not deep:
            folders.clear()


def _temporary(folder: Path) -> tuple[Path, int]:
    """A new temporary file, locked, and its handle."""
    while True:
        handle, name = tempfile.mkstemp(dir=folder, prefix=TEMPORARY)
        path = Path(name)
        if sys.platform == "win32":  # an open file cannot be removed there, and a lock bars writing
            return path, handle
        if lock(handle) and still_there(path, handle):
            return path, handle
        os.close(handle)  # swept by another process between creating and locking


def _remove_if_abandoned(path: Path) -> None:
    if not stat.S_ISREG(path.lstat().st_mode):
        return
    if sys.platform == "win32":
        path.unlink()
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        if lock(handle):
            path.unlink()
    finally:
        os.close(handle)


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Make an OSError name the requested file, not the temporary one."""
    try:
        yield
    except OSError as error:
        named = error.filename is not None and TEMPORARY not in str(error.filename)
        if error.errno is None or named:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
