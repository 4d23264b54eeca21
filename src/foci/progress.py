"""Progress bar on a terminal and in notebooks, a plain line every ten seconds anywhere else."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from typing import Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_SECONDS_BETWEEN_LINES = 10.0


def duration(seconds: float) -> str:
    """A time in the units that people would take.

    >>> duration(0.42), duration(42), duration(600), duration(7500)
    ('0.4 s', '42 s', '10 min', '2 h 5 min')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


class Sized(Protocol[T_co]):
    """An iterable with a length: a list, a stream of bags."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[T_co]: ...


class Progress(Protocol):
    """A function that wraps a loop to show its progress."""

    def __call__(self, items: Sized[T], what: str, /) -> Iterable[T]:
        """Yield the items; ``what`` says in a word or two what is done with them."""


_shown: ContextVar[Progress | None] = ContextVar("foci_progress", default=None)


def track(items: Sized[T], what: str) -> Iterable[T]:
    """Yield the items, and show progress where :func:`showing` has switched that on.

    Every loop of FOCI that may take a while goes through here.
    """
    progress = _shown.get()
    return items if progress is None else progress(items, what)


@contextmanager
def showing(progress: Progress | bool | None = None) -> Iterator[None]:
    """Show the progress of every loop inside the block; nothing is shown outside of one.

    The command line shows its messages in the same blocks: a step of something larger is silent in
    ``showing(False)``.

    Args:
        progress: True or False switches it on or off; None shows it where somebody looks on, which
            is on a terminal and in a notebook; or a function of one's own.
    """
    if progress is None:
        progress = sys.stderr.isatty() or _in_notebook()
    if isinstance(progress, bool):
        token = _shown.set(_display if progress else None)
    else:
        token = _shown.set(progress)
    try:
        yield
    finally:
        _shown.reset(token)


def is_shown() -> bool:
    """Whether progress is shown."""
    return _shown.get() is not None


def _display(items: Sized[T], what: str) -> Iterable[T]:
    """Show a bar on standard error, or lines where no bar can be drawn."""
    return _bar(items, what) if _has_bars() else _lines(items, what)


def _has_bars() -> bool:
    """Whether rich can draw bars: on a terminal, or in a notebook that has widgets."""
    return sys.stderr.isatty() or (_in_notebook() and find_spec("ipywidgets") is not None)


def _in_notebook() -> bool:
    """Whether the caller is a Jupyter kernel."""
    if "ipykernel" not in sys.modules:  # which every kernel has loaded
        return False
    from rich.console import Console

    return Console().is_jupyter


def _bar(items: Sized[T], what: str) -> Iterator[T]:
    from rich.console import Console
    from rich.progress import track as rich_track

    console = Console(stderr=True)
    yield from rich_track(items, what, total=len(items), console=console, transient=True)


def _lines(items: Sized[T], what: str) -> Iterator[T]:
    start = last = time.monotonic()
    for done, item in enumerate(items):
        now = time.monotonic()
        if now - last > _SECONDS_BETWEEN_LINES:
            last = now
            rate = done / (now - start)
            left = (len(items) - done) / rate if rate else float("inf")
            sys.stderr.write(f"{what}: {done}/{len(items)}, {left:.0f} s left\n")
        yield item
