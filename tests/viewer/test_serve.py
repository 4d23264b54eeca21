"""The server itself: port, address, warning, and who it listens to."""

import contextlib
import logging
import re
import socket
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.cookiejar import CookieJar
from urllib.parse import urlsplit

import pytest
import uvicorn

from foci.errors import FociError
from foci.viewer import serve as module
from foci.viewer.marks import MarkBook
from foci.viewer.serve import PORT, Few, listening, serve
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
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with browser.open(lines[0].removeprefix("viewer: ")) as answer:
            assert answer.status == 200
            assert "server" not in answer.headers
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(found[1])
        (bound,) = (sock.getsockname()[0] for one in server.servers for sock in one.sockets)
        assert bound == "127.0.0.1"
    finally:
        server.should_exit = True
        thread.join()


def asked(address: str) -> socket.socket:
    """A connection to a printed address on which nothing was sent."""
    own = urlsplit(address)
    return socket.create_connection((own.hostname, own.port), timeout=30)


def test_half_open_connections_leave_room_for_readers(
    catalogue: Catalogue,
    marks: MarkBook,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Of 200 that never finish a header most are closed at once, all of them in time."""
    monkeypatch.setattr(module, "HEADER_SECONDS", 1.0)
    monkeypatch.setattr(module, "open_files", lambda: 96)
    lines, server, thread = started(catalogue, marks, monkeypatch, "127.0.0.1")
    address = lines[0].removeprefix("viewer: ")
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    half: list[socket.socket] = []

    def half_open(number: int) -> None:
        half.append(asked(address))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            half[-1].send(b"GET / HTTP/1.1\r\nHost: 127" if number % 2 else b"")

    try:
        with ThreadPoolExecutor(50) as pool:  # one after the other they wait for the backlog
            list(pool.map(half_open, range(200)))
        with browser.open(address, timeout=5) as answer:
            assert answer.status == 200
        assert len(server.server_state.connections) <= 96 // 3 + 2
        for one in list(server.server_state.connections):
            own = one.transport.get_extra_info("socket")
            assert own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY), "no answer waits"
        start = time.monotonic()
        while len(server.server_state.connections) > 1 and time.monotonic() - start < 10:
            half[-1].send(b"x")  # a letter now and then does not keep it open
            time.sleep(0.2)
    except (BrokenPipeError, ConnectionResetError):
        pass
    finally:
        for one in half:
            one.close()
        server.should_exit = True
        thread.join()
    assert time.monotonic() - start < 5
    assert len(capfd.readouterr().err) < 2000


def test_a_broken_off_mark_is_no_traceback(
    catalogue: Catalogue,
    marks: MarkBook,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    lines, server, thread = started(catalogue, marks, monkeypatch, "127.0.0.1")
    address = lines[0].removeprefix("viewer: ")
    jar = CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    try:
        with browser.open(address) as answer:
            path, own = urlsplit(answer.url).path, urlsplit(answer.url).netloc
        (cookie,) = jar
        header = (
            f"POST {path}api/marks HTTP/1.1\r\nHost: {own}\r\nOrigin: http://{own}\r\n"
            f"Cookie: {cookie.name}={cookie.value}\r\nContent-Length: 100\r\n\r\n{{"
        )
        with asked(address) as broken:
            broken.send(header.encode())
            time.sleep(0.2)
        time.sleep(0.2)
    finally:
        server.should_exit = True
        thread.join()
    assert capfd.readouterr().err == ""
    assert not marks.path.exists()


def test_messages_of_a_flood_are_few(caplog: pytest.LogCaptureFixture) -> None:
    times = iter([0.0, *[1.0] * 100, 61.5, 61.5, 61.5])
    few = Few(3, lambda: next(times))
    said = []
    for number in range(101):
        record = logging.LogRecord("asyncio", 30, "", 0, "line\n%d", (number,), None)
        if few.filter(record):
            said.append(record.getMessage())
    left_out = "; further messages of this minute are left out"
    assert said == [
        r"foci view: line\n0", r"foci view: line\n1", rf"foci view: line\n2{left_out}",
        r"foci view: line\n100",
    ]  # fmt: skip


def test_another_host_comes_with_a_warning(
    catalogue: Catalogue, marks: MarkBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, server, thread = started(catalogue, marks, monkeypatch, "0.0.0.0")
    server.should_exit = True
    thread.join()
    assert lines[0].startswith("warning: 0.0.0.0 can be reached from other machines.")
    assert f"http://{socket.gethostname()}:" in lines[1]
