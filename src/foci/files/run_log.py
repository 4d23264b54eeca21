"""``foci.log``: what a run said, with times, in the folder that it writes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TextIO

from foci._version import __version__
from foci.errors import printable

LOG = "foci.log"
"""Name of the log. It is for people: no hash covers it, and no run depends on it."""


class RunLog:
    """Print messages and append them to the log of a folder; a resumed run appends to it.

    The file is opened with the first message after the folder has been made, so that a run that is
    refused leaves none. A log that cannot be written stops nothing.

    Args:
        folder: Folder of the run.
        what: What runs there, for the first line.
        say: Called with every message.
    """

    def __init__(
        self, folder: Path, what: str, say: Callable[[str], None] = lambda line: None
    ) -> None:
        self.path, self.say = Path(folder) / LOG, say
        self._file: TextIO | None = None
        self._waiting = [_timed(f"{what}, foci {__version__}")]

    def __enter__(self) -> RunLog:
        return self

    def __call__(self, line: str) -> None:
        """Print a message and log it."""
        self.say(line)
        self.log(line)

    def log(self, *lines: str) -> None:
        """Log messages that were printed elsewhere."""
        self._waiting += [_timed(line) for line in lines]
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
        if self._file is None:
            return
        if error is None:
            self.log("finished")
        elif isinstance(error, KeyboardInterrupt):
            self.log("stopped")
        else:
            self.log(f"stopped: {type(error).__name__}: {error}")
        with contextlib.suppress(OSError):
            self._file.close()
        self._file = None


def _timed(line: str) -> str:
    return f"{datetime.now(UTC).isoformat(timespec='seconds')} {printable(line)}\n"
