"""One made-up audit and its page, shared by all tests of reports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from foci.audits import StoredAudit
from foci.reports import write_report
from tests.makers.synthetic import Plan, make

if TYPE_CHECKING:
    from playwright.sync_api import Browser


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


@pytest.fixture(scope="session")
def page(audit: StoredAudit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(audit, tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from tests.reports.browser import open_browser

    with open_browser() as browser:
        yield browser
