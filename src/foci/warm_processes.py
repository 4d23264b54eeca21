"""Worker processes that start at once: forked off a process that has loaded torch beforehand."""

from __future__ import annotations

import multiprocessing
import sys
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext, SpawnContext

_LOADED = ["foci.audits.run", "pandas"]  # pyarrow loads pandas where it is installed


def preload() -> None:
    """Begin to load torch for the processes to come, in the background; returns at once.

    On Linux processes are forked off one that has loaded everything and computed nothing; elsewhere
    each of them loads for itself. Calling it again changes nothing.
    """
    if sys.platform == "linux":
        multiprocessing.set_forkserver_preload(_LOADED)
        forkserver.ensure_running()


def warm_context() -> ForkServerContext | SpawnContext:
    """How such processes are started."""
    if sys.platform == "linux":
        return multiprocessing.get_context("forkserver")
    else:  # noqa: RET505  # mypy skips the branch of another platform only if it is one
        return multiprocessing.get_context("spawn")
