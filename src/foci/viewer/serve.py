"""Run the viewer's server: choose a port, print the address, open the browser.

Connections that ask nothing cannot exhaust it: one that sends no whole header is closed after
seconds, or as soon as too many others wait, the oldest first.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import ipaddress
import logging
import socket
import sys
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator

import pyarrow as pa

from foci.errors import FociError, printable
from foci.viewer import EXTRA
from foci.viewer.marks import MarkBook
from foci.viewer.security import LOOPBACK, new_token
from foci.viewer.slides import Catalogue

PORT = 8765
_PORTS_TRIED = 20

HEADER_SECONDS = 10.0
"""In which a connection has to send the header of its first or next request."""

_ARENAS, _MAPPED, _TRIMMED = -8, -3, -1
"""Of glibc's mallopt: M_ARENA_MAX, M_MMAP_THRESHOLD, M_TRIM_THRESHOLD."""


def serve(
    catalogue: Catalogue,
    marks: MarkBook,
    *,
    host: str,
    port: int | None = None,
    browser: bool,
    say: Callable[[str], None],
) -> None:
    """Serve the viewer until it is interrupted; without a port, on the first free one."""
    try:
        import uvicorn

        from foci.viewer.app import viewer_app
    except ImportError as error:
        fix = f"pip install '{EXTRA}'"
        raise FociError(error.name or "uvicorn", f"cannot be loaded ({error})", fix) from error
    save_memory()
    local, token, machine = is_loopback(host), new_token(), socket.gethostname()
    names = [*LOOPBACK, host.lower()] if local else [*LOOPBACK, host.lower(), machine]
    app = viewer_app(catalogue, marks, token, names, any_address=not local)
    with listening(host, port) as sock:
        shown = machine if host in ("0.0.0.0", "::") else host  # noqa: S104
        shown = f"[{shown}]" if ":" in shown else shown
        url = f"http://{shown}:{sock.getsockname()[1]}/?token={token}"
        if not local:
            say(
                f"warning: {host} can be reached from other machines. Whoever has the address "
                "sees slides and names, and nothing on the way is encrypted."
            )
        say(f"viewer: {url}")
        say("stop it with Ctrl-C")
        if browser:
            threading.Timer(0.3, webbrowser.open, [url]).start()
        config = uvicorn.Config(
            app, http=bounded_protocol(), loop="asyncio", ws="none", backlog=open_files() // 8,
            log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=2,
        )  # fmt: skip
        with few_messages():
            uvicorn.Server(config).run(sockets=[sock])


def open_files() -> int:
    """How many files this process may have open, sockets among them; 512 where that is more."""
    if sys.platform == "win32":
        return 512
    import resource

    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return min(512, soft) if soft > 0 else 512


def bounded_protocol() -> type[asyncio.Protocol]:
    """HTTP of a server that half-open connections cannot starve."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    waiting: dict[BoundedProtocol, asyncio.TimerHandle] = {}
    most = open_files() // 3  # pictures and slides need files, too

    class BoundedProtocol(H11Protocol):
        """Closes connections that wait for a header too long, or are too many."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._wait()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._stop_waiting()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if not self.transport.is_closing():
                self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def _wait(self) -> None:
            self._stop_waiting()
            waiting[self] = self.loop.call_later(HEADER_SECONDS, self.transport.abort)
            if len(waiting) > most:
                never_asked = (one for one in waiting if one.cycle is None)
                oldest = next(never_asked, next(iter(waiting)))
                oldest._stop_waiting()
                oldest.transport.abort()

        def _stop_waiting(self) -> None:
            timer = waiting.pop(self, None)
            if timer is not None:
                timer.cancel()

    return BoundedProtocol


class Few(logging.Filter):
    """Lets so many messages pass in a minute; the last of them says that others are left out."""

    def __init__(self, number: int = 20, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._number, self._clock = number, clock
        self._start, self._count = clock(), 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a message may pass; one line is left of it, without a traceback."""
        if self._clock() - self._start > 60:
            self._start, self._count = self._clock(), 0
        self._count += 1
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text = f"{text.strip()}: {record.exc_info[1]!r}"
        end = (
            "; further messages of this minute are left out" if self._count == self._number else ""
        )
        record.msg, record.args = f"foci view: {printable(text)[:500]}{end}", None
        record.exc_info = record.exc_text = None
        return self._count <= self._number


@contextlib.contextmanager
def few_messages() -> Iterator[None]:
    """Warnings of the server on standard error, one line each, and never a flood of them."""
    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    handler.addFilter(Few())
    loggers = [logging.getLogger(name) for name in ("uvicorn", "asyncio")]
    for logger in loggers:
        logger.addHandler(handler)
        logger.propagate = False
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
            logger.propagate = True


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


def listening(host: str, port: int | None) -> socket.socket:
    """A socket that listens: on the port asked for, or the first free one."""
    wanted = [*range(PORT, PORT + _PORTS_TRIED), 0] if port is None else [port]
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for one in wanted:
        # asyncio sends answers at once only where TCP is named; else each waits 40 ms.
        sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, one))
        except OSError as error:
            sock.close()
            if port is not None or isinstance(error, socket.gaierror):
                what = f"cannot listen on port {one} ({error.strerror})"
                raise FociError(host, what, "give another --host or --port") from None
        else:
            return sock
    raise FociError(host, "has no free port", "give one with --port")


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host in LOOPBACK:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
