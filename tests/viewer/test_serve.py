"""The server itself: port, address, warning, and who it listens to."""

import re
import socket
import threading
import time
import urllib.error
import urllib.request

import pytest
import uvicorn

from foci.errors import FociError
from foci.viewer.marks import MarkBook
from foci.viewer.serve import PORT, listening, serve
from foci.viewer.slides import Catalogue


def test_a_taken_port_is_one_line_and_the_next_one_is_found() -> None:
    with listening("127.0.0.1", None) as first:
        port = first.getsockname()[1]
        first.listen()
        assert port >= PORT
        with listening("127.0.0.1", None) as second:
            assert second.getsockname()[1] != port
        with pytest.raises(
            FociError, match=rf"127.0.0.1: cannot listen on port {port} \(.*\); give"
        ):
            listening("127.0.0.1", port)
    with pytest.raises(FociError, match=r"nowhere.invalid: cannot listen"):
        listening("nowhere.invalid", None)


def started(
    catalogue: Catalogue, marks: MarkBook, monkeypatch: pytest.MonkeyPatch, host: str
) -> tuple[list[str], uvicorn.Server, threading.Thread]:
    lines: list[str] = []
    servers: list[uvicorn.Server] = []
    made = uvicorn.Server

    def keep(config: uvicorn.Config) -> uvicorn.Server:
        servers.append(made(config))
        return servers[-1]

    monkeypatch.setattr(uvicorn, "Server", keep)
    thread = threading.Thread(
        target=serve,
        args=(catalogue, marks),
        kwargs={"host": host, "browser": False, "say": lines.append},
    )
    thread.start()
    while not (servers and servers[0].started):
        assert thread.is_alive()
        time.sleep(0.01)
    return lines, servers[0], thread


def test_the_printed_address_opens_the_viewer_on_loopback_only(
    catalogue: Catalogue, marks: MarkBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, server, thread = started(catalogue, marks, monkeypatch, "127.0.0.1")
    try:
        found = re.fullmatch(r"viewer: (http://127\.0\.0\.1:(\d+)/)\?token=([\w-]{32})", lines[0])
        assert found, lines
        with urllib.request.urlopen(lines[0].removeprefix("viewer: ")) as answer:
            assert answer.status == 200
            assert "server" not in answer.headers
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(found[1])
        (bound,) = (sock.getsockname()[0] for one in server.servers for sock in one.sockets)
        assert bound == "127.0.0.1"
    finally:
        server.should_exit = True
        thread.join()


def test_another_host_comes_with_a_warning(
    catalogue: Catalogue, marks: MarkBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, server, thread = started(catalogue, marks, monkeypatch, "0.0.0.0")
    server.should_exit = True
    thread.join()
    assert lines[0].startswith("warning: 0.0.0.0 can be reached from other machines.")
    assert f"http://{socket.gethostname()}:" in lines[1]
