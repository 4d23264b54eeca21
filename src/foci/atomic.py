"""Atomic writes: a file or folder appears complete or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

TEMPORARY = ".writing-"
"""Prefix of temporary names, which a killed process may leave behind."""


def write_whole(path: str | Path, content: bytes | str, *, durable: bool = True) -> None:
    """Write a file atomically: under a temporary name in the same folder, then rename.

    Args:
        path: Final name; a file already there is replaced.
        content: Text is written as UTF-8.
        durable: Also force the content to disk, so that a power cut leaves the old or the new file.
    """
    with whole_file(path, durable=durable) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


@contextlib.contextmanager
def whole_file(path: str | Path, *, durable: bool = True) -> Iterator[Path]:
    """Temporary file that replaces ``path`` when the block ends without an error.

    For content that is written piece by piece. After an error the old file is still there.

    Args:
        path: Final name; a file already there is replaced.
        durable: See :func:`write_whole`.
    """
    path = Path(path)
    with _named(path):
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=TEMPORARY)
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            if durable:
                with temporary.open("rb+") as file:
                    os.fsync(file.fileno())
            temporary.chmod(0o666 & ~_umask())
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise


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
    """Delete the temporary files of killed processes in a folder, with ``deep`` also below it."""
    for path in folder.glob(f"{'**/' if deep else ''}{TEMPORARY}*"):
        if path.is_file():
            path.unlink(missing_ok=True)


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
