"""Headless Chromium for tests, if the machine has one."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, Page
from tools.screenshots import chromium


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Launch the first Chromium on the path; skip the test if there is none."""
    try:
        with chromium() as browser:
            yield browser
    except FileNotFoundError as error:
        pytest.skip(str(error))


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
