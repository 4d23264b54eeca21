"""Recognise files by name, size and time of change, without reading them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from foci.errors import ChangedError


def stamp(path: Path) -> list[Any]:
    """``[name, bytes, nanoseconds]`` of a file; a missing one has only its name.

    The folder is left out: a file that was moved, with its time, is the same file.
    """
    try:
        facts = path.stat()
    except OSError:
        return [path.name, None, None]
    return [path.name, facts.st_size, facts.st_mtime_ns]


class Unchanged:
    """Files that must stay as they are while a run reads them.

    A file that is replaced by one of the same size and time of change is not noticed.

    Args:
        files: The files; their stamps are taken at once.
    """

    def __init__(self, files: Iterable[Path]) -> None:
        self._stamps = {path: stamp(path) for path in files}

    def check(self, during: str) -> None:
        """Raise an error if a file was changed, replaced or removed meanwhile.

        Args:
            during: What reads them: ``"the audit"``.
        """
        changed = [path for path, before in self._stamps.items() if stamp(path) != before]
        if changed:
            more = f" (and {len(changed) - 1} more)" if len(changed) > 1 else ""
            what = f"was changed during {during}{more}"
            raise ChangedError(changed[0], what, "leave it alone and start again")
