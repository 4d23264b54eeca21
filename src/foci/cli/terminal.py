"""The way of text to the terminal: no control characters, no letters that it cannot show."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from foci.errors import FociError, printable

LOG = "FOCI_LOG"
"""Environment variable: file that gets the tracebacks of unforeseen errors."""

_COLOUR = re.compile("(\x1b\\[[0-9;]*m)")
_LAID_OUT = ("\n", "\t")


class _Escaping:
    """A text stream that escapes control characters, except for colours, line ends and TABs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @property
    def encoding(self) -> str:
        """UTF-8: whatever the terminal cannot show is escaped below, not by the caller."""
        return "utf-8"

    def write(self, text: str) -> int:
        """Write text to the stream below."""
        return self._stream.write(safe(text))


def safe(text: str) -> str:
    r"""Text without control characters other than colours, line ends and TABs.

    >>> print(safe("a\x07b\rc"))
    a\x07b\rc
    """
    if text.replace("\n", "").isprintable():
        return text
    pieces = _COLOUR.split(text)
    return "".join(
        piece
        if _COLOUR.fullmatch(piece)
        else "".join(c if c in _LAID_OUT else printable(c) for c in piece)
        for piece in pieces
    )


@contextlib.contextmanager
def prepared() -> Iterator[None]:
    """Standard output that never fails on a letter and passes no control characters on."""
    plain = sys.stdout
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    sys.stdout = _Escaping(plain)
    try:
        yield
    finally:
        sys.stdout = plain


@contextlib.contextmanager
def logged() -> Iterator[None]:
    """Write FOCI's log to the file that ``FOCI_LOG`` names; without one it is discarded."""
    place = os.environ.get(LOG)
    if not place:
        yield
        return
    try:
        handler = logging.FileHandler(place, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        what = f"{place} cannot be written ({error.strerror})"
        raise FociError(LOG, what, "name another file") from None
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    logger = logging.getLogger("foci")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()
