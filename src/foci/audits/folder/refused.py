"""A run that is refused before its first results leaves nothing behind."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from foci.audits.folder.names import MANIFEST, PARTS, SELECTORS
from foci.audits.folder.removal import clear
from foci.audits.folder.state import State, entered
from foci.errors import FociError
from foci.files.run_log import LOG
from foci.selectors.saved import METADATA


@contextlib.contextmanager
def locked_run_folder(
    folder: Path, inputs: Mapping[str, Any], versions: Mapping[str, str], *, force: bool
) -> Iterator[State]:
    """As :func:`~foci.audits.folder.state.entered`, but a refusal removes what a new run has begun.

    Its manifest would make the next run, with the mistake corrected, demand ``--force``. Slides
    that were computed and selectors that were fitted stay, with the manifest that they need.
    """
    existed = folder.exists()
    try:
        with entered(folder, inputs, versions, force=force) as state:
            try:
                yield state
            except FociError:
                if state == "new" and not _has_results(folder):
                    clear(folder)
                    for name in (MANIFEST, LOG):
                        (folder / name).unlink(missing_ok=True)
                raise
    except FociError:
        if not existed:
            with contextlib.suppress(OSError):  # it is not empty
                folder.rmdir()
        raise


def _has_results(folder: Path) -> bool:
    fitted = (folder / SELECTORS).glob(f"*/{METADATA}")
    return (folder / PARTS).exists() or any(fitted)
