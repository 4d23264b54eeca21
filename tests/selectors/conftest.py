"""One small cohort per test file."""

import pytest

from foci.bags import Cohort
from tests.makers.cohorts import planted


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Cohort:
    return planted(tmp_path_factory.mktemp("planted"))
