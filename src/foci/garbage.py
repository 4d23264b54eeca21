"""Spare the garbage collector the objects of loaded libraries."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def frozen_gc() -> Iterator[None]:
    """Inside the block, collect no garbage among the objects that exist when it begins.

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
