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
def alone_in(folder: Path, command: str = "foci audit", name: str = LOCK) -> Iterator[None]:
    """Lock a folder for one run; the operating system releases the lock if the process dies.

    On a file system without locks, nothing is locked; see :func:`check_locks`.

    Args:
        folder: Must exist.
        command: What the other run is, for the error.
        name: Of the lock file; others with other names do not mind each other.

    Raises:
        FociError: If another run holds the folder.
    """
    path = folder / name
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


@contextlib.contextmanager
def alone_if_free(folder: Path, name: str = LOCK) -> Iterator[bool]:
    """:func:`alone_in`, but False where another process holds the lock."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(alone_in(folder, name=name))
        except FociError:
            yield False
            return
        yield True


def check_locks(folder: Path) -> None:
    """Refuse a folder in which several machines could not keep out of each other's way.

    Raises:
        FociError: If its file system has no locks.
    """
    path = folder / f"{LOCK}-tried"
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        lock_descriptor(handle, blocking=False)
    except OSError as error:
        what = f"is on a file system without locks ({error.strerror})"
        fix = "several machines need them: choose another --out, or run it on one machine"
        raise FociError(folder, what, fix) from None
    finally:
        os.close(handle)
        path.unlink(missing_ok=True)


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
