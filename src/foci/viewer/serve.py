"""Run the viewer's server: choose a port, print the address, open the browser."""

from __future__ import annotations

import contextlib
import ctypes
import ipaddress
import socket
import threading
import webbrowser
from collections.abc import Callable

import pyarrow as pa

from foci.errors import FociError
from foci.viewer import EXTRA
from foci.viewer.marks import MarkBook
from foci.viewer.security import LOOPBACK, new_token
from foci.viewer.slides import Catalogue

PORT = 8765
_PORTS_TRIED = 20

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
            app, log_level="warning", access_log=False, server_header=False, ws="none",
            timeout_graceful_shutdown=2,
        )  # fmt: skip
        uvicorn.Server(config).run(sockets=[sock])


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
        sock = socket.socket(family, socket.SOCK_STREAM)
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
