"""Processes that start at once, and a garbage collector that leaves loaded libraries alone."""

from __future__ import annotations

import gc
import multiprocessing
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import forkserver, resource_tracker
from multiprocessing.context import ForkServerContext, SpawnContext

_LOADED = ["foci.audits.run", "pandas"]  # pyarrow loads pandas where it is installed


def preload() -> None:
    """Start to load torch for the processes to come, in the background; returns at once.

    On Linux processes are forked off one that has loaded everything and computed nothing; elsewhere
    each of them loads for itself. Calling it again changes nothing.
    """
    if sys.platform == "linux":
        multiprocessing.set_forkserver_preload(_LOADED)
        resource_tracker.ensure_running()  # which would end the block of signals below
        with _ignored_by_children(signal.SIGINT):  # Ctrl-C reaches them, too, while they load
            forkserver.ensure_running()


def warm_context() -> ForkServerContext | SpawnContext:
    """How such processes are started."""
    if sys.platform == "linux":
        return multiprocessing.get_context("forkserver")
    else:  # noqa: RET505  # mypy skips the branch of another platform only if it is one
        return multiprocessing.get_context("spawn")


@contextmanager
def _ignored_by_children(number: signal.Signals) -> Iterator[None]:
    """Processes that are started inside the block ignore a signal for all of their life.

    This one gets it after the block.
    """
    if threading.current_thread() is not threading.main_thread():  # which alone may set handlers
        yield
        return
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {number})
    before = signal.signal(number, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(number, before)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


@contextmanager
def signals_held_back() -> Iterator[None]:
    """Ctrl-C and SIGTERM inside the block are answered after it.

    Nobody would wait for a process whose start was interrupted: it would outlive the answer and
    print a traceback.
    """
    if threading.current_thread() is not threading.main_thread():  # which alone may set handlers
        yield
        return
    waiting: list[int] = []
    before = {
        number: signal.signal(number, lambda came, _: waiting.append(came))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for came in waiting[:1]:
            signal.raise_signal(came)


@contextmanager
def frozen_gc() -> Iterator[None]:
    """Inside the block, collect no garbage among the objects that exist when it starts.

    Torch and its company bring a quarter of a million of them, none of them garbage. To go through
    them all takes as long as to audit several small slides, and happens several times in an audit.
    Where objects are frozen already, they stay as they are.
    """
    if gc.get_freeze_count():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
