"""Headless Chromium for tests, if the machine has one."""

import atexit
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from tools.screenshots import chromium

THEMES = [(1440, False), (390, True)]
"""Widths, each with whether the theme is dark."""
if "FOCI_SLOW" in os.environ:
    THEMES += [(width, not dark) for width, dark in THEMES]
Open = Callable[..., Page]
AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"


_STARTED = ExitStack()
atexit.register(_STARTED.close)


@cache
def _started() -> Browser:
    return _STARTED.enter_context(chromium())


@contextmanager
def open_browser() -> Iterator[Browser]:
    """The first Chromium on the path, one for all tests of a process; skip if there is none."""
    try:
        browser = _started()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    yield browser


@dataclass
class Watched:
    """A page with a record of its console messages, errors, dialogs and requests."""

    page: Page
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", lambda message: self.said.append(f"{message.type} {message.text}"))
        self.page.on("pageerror", lambda error: self.said.append(f"error {error}"))
        self.page.on("dialog", lambda dialog: self.said.append(f"dialog {dialog.message}"))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def assert_quiet(self, url: str) -> None:
        """Assert that the page logged nothing and requested only its own file."""
        assert self.said == []
        assert {asked.split("#")[0] for asked in self.asked} <= {url.split("#")[0]}


def findings(page: Page) -> list[str]:
    """Serious and critical findings of axe-core on a page, one line per element."""
    # The page's policy forbids other scripts; the debugger is not bound by it.
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found: list[str] = page.evaluate(
        """async () => {
            const {violations} = await axe.run();
            const bad = violations.filter(({impact}) => ["serious", "critical"].includes(impact));
            return bad.flatMap(({id, nodes}) => nodes.map((node) => `${id}: ${node.html}`));
        }"""
    )
    return found
