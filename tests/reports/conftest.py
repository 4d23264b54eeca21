"""One made-up audit and its page, shared by all tests of reports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from foci.audits import StoredAudit
from foci.reports import write_report
from tests.makers.curves import Pair, Settings, rationale_table, slides, tiles
from tests.makers.folders import finished
from tests.makers.synthetic import Plan, make

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.reports.browser import Open


@pytest.fixture(scope="session")
def audit(tmp_path_factory: pytest.TempPathFactory) -> StoredAudit:
    """Two classes, 20 slides, three of them with hostile names; read only."""
    return make(tmp_path_factory.mktemp("audit"))


@pytest.fixture(scope="session")
def multiclass(tmp_path_factory: pytest.TempPathFactory) -> StoredAudit:
    """Four classes; read only."""
    return make(tmp_path_factory.mktemp("multiclass"), Plan(n_slides=14, n_classes=4, k_max=40))


@pytest.fixture(scope="session")
def unlabelled(tmp_path_factory: pytest.TempPathFactory) -> StoredAudit:
    """No labels, no selector, and too few patients to answer; read only."""
    plan = Plan(n_slides=6, labelled=False, rankings=("native", "random"), synthetic_note=False)
    return make(tmp_path_factory.mktemp("unlabelled"), plan)


NATIVE: tuple[Pair, ...] = (
    (1, 2), (3, 5), (8, 4), (10, 10), (20, 30), (33, 12), (1, None), (None, 5), (2, None), (5, 6),
    (1, 2), (1, 2),
)  # fmt: skip
"""MSK and flip of every slide under the map; the last two slides are not sure."""


@pytest.fixture(scope="session")
def carried(tmp_path_factory: pytest.TempPathFactory) -> StoredAudit:
    """Twelve slides whose deciding tiles are known in closed form, the larger of MSK and flip."""
    folder = tmp_path_factory.mktemp("carried")
    pairs = {
        "native": NATIVE,
        "evidence": [(1, 1 + i) for i in range(12)],
        "random": [(100, None)] * 12,
    }
    curves = rationale_table(pairs, full=[0.95] * 10 + [0.7] * 2, n_tiles=300)
    cases, labels = [f"P{i // 2}" if i < 4 else f"P{i}" for i in range(12)], ["tumour"] * 12
    known = slides(cases, labels, [300] * 12)
    places = np.stack(np.meshgrid(np.arange(20), np.arange(15)), -1).reshape(-1, 2) * 256
    scores = [replace(one, coords=places) for one in tiles(curves)]
    settings = Settings(rankings=tuple(pairs), n_boot=50)
    return finished(folder, curves, known, scores, settings)


@pytest.fixture(scope="session")
def page(audit: StoredAudit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(audit, tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    from tests.reports.browser import open_browser

    with open_browser() as browser:
        yield browser


@pytest.fixture
def visit(browser: Browser, page: Path) -> Iterator[Open]:
    """Open the report; fail at the end if the page logged or fetched anything."""
    from tools.screenshots import wait_until_drawn

    from tests.reports.browser import Watched

    opened: list[tuple[Watched, str]] = []

    def go(fragment: str = "", file: Path = page, **context: Any) -> Page:
        tab = browser.new_context(
            **{"viewport": {"width": 1280, "height": 900}, **context}
        ).new_page()
        opened.append((Watched(tab), file.as_uri()))
        tab.goto(file.as_uri() + fragment)
        if context.get("java_script_enabled", True):
            wait_until_drawn(tab)
        return tab

    yield go
    for watched, url in opened:
        watched.assert_quiet(url)
        watched.page.context.close()
