"""Give memory back as soon as a picture is sent, so that the server stays small."""

from __future__ import annotations

import contextlib
import ctypes

import pyarrow as pa

_ARENAS, _MAPPED, _TRIMMED = -8, -3, -1
"""Of glibc's mallopt: M_ARENA_MAX, M_MMAP_THRESHOLD, M_TRIM_THRESHOLD."""


def save_memory() -> None:
    """Set up the allocators for a server that reads many pictures in several threads.

    Decoded pictures are mapped and unmapped one by one instead of staying in the heap, threads
    share two heaps, and Arrow keeps no pool of its own. Only glibc has these settings; elsewhere
    nothing happens.
    """
    pa.set_memory_pool(pa.system_memory_pool())
    with contextlib.suppress(AttributeError, OSError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_ARENAS, 2)
        mallopt(_MAPPED, 256 << 10)
        mallopt(_TRIMMED, 1 << 20)
