"""``foci.log``: the messages of a run, with times, in the folder that it writes."""

from __future__ import annotations

import contextlib
import logging
import threading
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TextIO

from foci._version import __version__
from foci.errors import printable

LOG = "foci.log"
"""Name of the log. It is for people: no hash covers it, and no run depends on it."""


class RunLog(logging.Handler):
    """Append FOCI's messages of this thread to the log of a folder; a resumed run continues it.

    The file is opened with the first message after the folder has been made, so that a run that is
    refused leaves none. A log that cannot be written stops nothing.

    Args:
        folder: Folder of the run.
        what: What runs there, for the first line.
        held: Write nothing before :meth:`begin`; for a folder that may be another run's.
    """

    def __init__(self, folder: Path, what: str, *, held: bool = False) -> None:
        super().__init__(logging.INFO)
        self.path = Path(folder) / LOG
        self._held, self._thread = held, threading.get_ident()
        self._file: TextIO | None = None
        self._waiting = [_timed(f"{what}, foci {__version__}")]

    def __enter__(self) -> RunLog:
        logging.getLogger("foci").addHandler(self)
        return self

    def emit(self, record: logging.LogRecord) -> None:
        """Log a message of this thread; tracebacks are for ``FOCI_LOG``."""
        if record.thread == self._thread and not record.exc_info:
            self._log(in_plain_words(record))

    def begin(self) -> None:
        """Write what has been held back, and from now on every message at once."""
        self._held = False
        self._write()

    def _log(self, line: str) -> None:
        self._waiting.append(_timed(line))
        if not self._held:
            self._write()

    def _write(self) -> None:
        with contextlib.suppress(OSError):
            if self._file is None:
                self._file = self.path.open("a", encoding="utf-8")
            while self._waiting:
                self._file.write(self._waiting.pop(0))
            self._file.flush()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        logging.getLogger("foci").removeHandler(self)
        if self._file is not None:
            if error is None:
                self._log("finished")
            elif isinstance(error, KeyboardInterrupt):
                self._log("stopped")
            else:
                self._log(f"stopped: {type(error).__name__}: {error}")
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None
        self.close()


def in_plain_words(record: logging.LogRecord) -> str:
    """A message as a line for people: a warning says that it is one."""
    line = record.getMessage()
    return f"warning: {line}" if record.levelno == logging.WARNING else line


def _timed(line: str) -> str:
    return f"{datetime.now(UTC).isoformat(timespec='seconds')} {printable(line)}\n"
