"""Lock a folder or a file, so that only one process writes into it."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from filelock import lock_descriptor

from foci.errors import FociError

LOCK = ".foci-lock"
"""Name of the lock file; a killed process releases the lock but leaves the file behind."""


@contextlib.contextmanager
def alone_in(folder: Path, command: str = "foci audit") -> Iterator[None]:
    """Lock a folder for one run; the operating system releases the lock if the process dies.

    On a file system without locks, nothing is locked.

    Args:
        folder: Must exist.
        command: What the other run is, for the error.

    Raises:
        FociError: If another run holds the folder.
    """
    path = folder / LOCK
    handle = _hold(path, command)
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


def _hold(path: Path, command: str) -> int:
    """Open and lock the file; return its handle."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if not lock(handle):
                what = f"another {command} is running here"
                raise FociError(path.parent, what, "wait for it, or choose another --out")
            if still_there(path, handle):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # removed by the run that held it, between opening and locking


def still_there(path: Path, handle: int) -> bool:
    """Whether the path still names the file that is open; another process may have removed it."""
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def lock(handle: int) -> bool:
    """Lock an open file until it is closed; False if another process holds it.

    On a file system without locks, nothing is locked, and the answer is True.
    """
    try:
        return lock_descriptor(handle, blocking=False)
    except OSError:
        return True
