"""Lock an audit folder, so that only one run writes into it."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from foci.errors import FociError

LOCK = ".foci-lock"
"""Name of the lock file; a killed process releases the lock but leaves the file behind."""


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Lock a folder for one run; the operating system releases the lock if the process dies.

    On a file system without locks, nothing is locked.

    Raises:
        FociError: If another run holds the folder.
    """
    path = folder / LOCK
    handle = _hold(path)
    try:
        yield
    finally:
        # Windows cannot remove an open file, so it is closed first, and stays if another run has
        # opened it; elsewhere it is removed while locked, so that no run locks a deleted file
        if sys.platform == "win32":
            os.close(handle)
            with contextlib.suppress(OSError):
                path.unlink()
        else:
            with contextlib.suppress(OSError):
                path.unlink()
            os.close(handle)


def _hold(path: Path) -> int:
    """Open and lock the file; return its handle."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _lock(handle)
            if _still_there(path, handle):
                return handle
        except BlockingIOError:
            os.close(handle)
            what = "another foci audit is running here"
            raise FociError(path.parent, what, "wait for it, or choose another --out") from None
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # removed by the run that held it, between opening and locking


def _still_there(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


if sys.platform == "win32":
    import msvcrt

    def _lock(handle: int) -> None:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(*error.args) from None

else:
    import fcntl

    def _lock(handle: int) -> None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:  # any other reason: this file system has no locks
            if error.errno in (errno.EAGAIN, errno.EACCES):
                raise BlockingIOError(*error.args) from None
