"""A ranking as it is asked for: by name, or ``from-file=PATH`` for somebody else's map."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foci.errors import FociError
from foci.rankings.registry import RANKINGS

FROM_FILE = "from-file"


@dataclass(frozen=True)
class RequestedRanking:
    """A ranking of an audit.

    Attributes:
        name: Its name in tables: that of the method, or ``from-file-`` and the file's name.
        method: Name in :func:`foci.rankings.available`.
        path: The score file, absolute; None for all other methods.
    """

    name: str
    method: str
    path: Path | None = None

    @property
    def text(self) -> str:
        """What to write to ask for it."""
        return self.method if self.path is None else f"{self.method}={self.path}"

    @property
    def options(self) -> dict[str, Any]:
        """Options of the method."""
        return {} if self.path is None else {"path": self.path}


def requested(text: str) -> RequestedRanking:
    """Parse a ranking's name, or ``from-file=PATH``.

    Raises:
        FociError: If the ranking is unknown, or a path is missing or given to another ranking.

    >>> requested("native").name, requested("from-file=/maps/grad cam.csv").name
    ('native', 'from-file-grad-cam')
    """
    method, _, path = text.partition("=")
    known = RANKINGS[method]
    if known.name != FROM_FILE:
        if path:
            fix = f"write {known.name}, or {FROM_FILE}=PATH"
            raise FociError(f"ranking {text!r}", f"{known.name} takes no file", fix)
        return RequestedRanking(known.name, known.name)
    if not path:
        fix = f"write {FROM_FILE}=PATH"
        raise FociError(f"ranking {FROM_FILE!r}", "needs the file with the scores", fix)
    file = Path(os.path.abspath(path))  # noqa: PTH100 - a link stays what the user called it
    stem = re.sub(r"[^A-Za-z0-9._]+", "-", file.stem)
    return RequestedRanking(f"{FROM_FILE}-{stem}", FROM_FILE, file)
