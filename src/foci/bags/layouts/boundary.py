"""The boundary around reading a bag: whatever goes wrong inside costs this one slide."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from foci.errors import BagError, FociError
from foci.files.limits import BAG_GB, excess

_LOG = logging.getLogger(__name__)
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe (FIFO)",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn any exception while a feature file is read into a :class:`BagError`.

    An exception of a type that no reader expects is a defect of FOCI or a new kind of damage: it
    goes to the log with its traceback (logger ``foci.bags.layouts.boundary``).
    """
    try:
        yield
    except FociError:
        raise
    except OSError as error:
        raise unopened(path, error) from error
    except MemoryError as error:
        fix = "free some memory or lower --n-cap; if the file is damaged, extract the slide again"
        raise BagError(path, "needs more memory than there is", fix) from error
    except Exception as error:
        _LOG.exception("%s cannot be read", path)
        what = f"cannot be read ({type(error).__name__}: {error})"
        fix = "extract or copy the file again; FOCI_LOG=FILE keeps the traceback"
        raise BagError(path, what, fix) from error


def check_file(path: Path) -> None:
    """Refuse what is not a plain file: opening a pipe waits forever, a device has no end."""
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
    except OSError as error:
        raise unopened(path, error) from None
    if kind != stat.S_IFREG:
        what = f"is {_KINDS.get(kind, 'something else')}, not a file"
        raise BagError(path, what, "put the feature file itself there")


def check_size(shape: tuple[int, ...], itemsize: int, path: Path) -> None:
    """Refuse an array that would be larger than the limit, before it is allocated."""
    if what := excess(shape, itemsize):
        raise BagError(path, what, f"extract the slide again, or raise {BAG_GB} if it is right")


def unopened(path: Path, error: OSError) -> BagError:
    """Why a file could not be opened, and what helps."""
    if isinstance(error, FileNotFoundError):
        return BagError(path, "does not exist", "check the feature folder")
    if isinstance(error, PermissionError):
        fix = "give yourself the right to read it (chmod u+r), or ask its owner"
        return BagError(path, "may not be read (permission denied)", fix)
    why = str(error) if error.errno is None else os.strerror(error.errno).lower()
    return BagError(path, f"cannot be read ({why})", "check the disk, or copy the file again")
