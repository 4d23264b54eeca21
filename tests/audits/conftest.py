"""Files of one small cohort, and one finished audit of it."""

from pathlib import Path

import pytest

from foci.audits import StoredAudit
from tests.makers.audits import audit
from tests.makers.cohorts import make_files


@pytest.fixture(scope="session")
def audited(tmp_path_factory: pytest.TempPathFactory) -> StoredAudit:
    """Finished audit with native, selector and random; read only."""
    return audit(make_files(tmp_path_factory.mktemp("audited")))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return make_files(tmp_path)
