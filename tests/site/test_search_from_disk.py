"""The script that lets the site's search run from disk, where browsers start no worker."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page
from tools.site.pages import DOCS

from tests.reports.browser import open_browser

ECHO = """
self.onmessage = event => {
  const seen = event.data
  self.postMessage({ sum: seen.numbers.reduce((a, b) => a + b), same: seen === self.parent.sent })
}
"""
ASK = """async () => {
  window.sent = { numbers: [1, 2, 3] }
  const worker = new Worker(new URL("echo.js", location))
  const answer = new Promise(done => { worker.onmessage = event => done(event.data) })
  worker.postMessage(window.sent)
  window.sent.numbers.push(100)
  return await answer
}"""


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    shutil.copy(DOCS / "assets" / "iframe-worker.js", tmp_path)
    (tmp_path / "echo.js").write_text(ECHO)
    (tmp_path / "index.html").write_text('<script src="iframe-worker.js"></script><p>page</p>')
    with open_browser() as browser:
        page = browser.new_page()
        page.goto((tmp_path / "index.html").as_uri())
        yield page


def test_a_worker_answers_and_sees_a_copy_of_the_message(page: Page) -> None:
    assert page.evaluate(ASK) == {"sum": 6, "same": False}
