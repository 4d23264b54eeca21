"""The viewer served to a real browser."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import uvicorn
from playwright.sync_api import Browser, Page

from foci.viewer.app import viewer_app
from foci.viewer.marks import MarkBook
from foci.viewer.slides import Catalogue
from tests.reports.browser import Watched
from tests.viewer.conftest import TOKEN

PATIENCE = 30_000
"""Milliseconds: machines that run tests are often busy."""


@contextmanager
def served(catalogue: Catalogue, marks: Path) -> Iterator[str]:
    """Address of a running viewer."""
    app = viewer_app(catalogue, MarkBook(marks), TOKEN)
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
        server.should_exit = True
        thread.join()


class Reader:
    """Opens screens, and knows whether one of their pages logged or fetched anything odd.

    Args:
        browser: Chromium.
        address: The viewer.
    """

    def __init__(self, browser: Browser, address: str) -> None:
        self.browser, self.address = browser, address
        self.opened: list[Watched] = []

    def open(self, screen: str, slide: str | None = None, more: str = "", **context: Any) -> Page:
        """A new tab with a screen whose slides are drawn."""
        settings = {"viewport": {"width": 1440, "height": 900}, **context}
        tab = self.browser.new_context(**settings).new_page()
        tab.set_default_timeout(PATIENCE)
        self.opened.append(Watched(tab))
        self._show(tab, f"{self.address}/?token={TOKEN}", screen, slide, more)
        return tab

    def turn_to(self, tab: Page, screen: str, slide: str) -> None:
        """Show another slide in a tab that is open."""
        self._show(tab, tab.url.partition("#")[0], screen, slide)

    def _show(self, tab: Page, page: str, screen: str, slide: str | None, more: str = "") -> None:
        named = "" if slide is None else f"&slide={quote(slide, safe='')}"
        tab.goto(f"{page}#screen={screen}{named}{more}")
        tab.locator("h1").wait_for()
        for stage in tab.locator(".stage").all():
            stage.and_(tab.locator("[data-loaded=true]")).wait_for()

    def close(self, *, quiet: bool = True) -> None:
        """Close all tabs; nothing may have been logged, and nothing asked of another server."""
        for watched in self.opened:
            if quiet:
                assert watched.said == []
            servers = {urlsplit(url).netloc for url in watched.asked} - {""}
            assert servers == {urlsplit(self.address).netloc}
            watched.page.context.close()
