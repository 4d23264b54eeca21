"""One small cohort for all tests."""

import pytest

from foci.bags import Cohort
from tests.makers.cohorts import planted


@pytest.fixture(scope="session")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Cohort:
    return planted(tmp_path_factory.mktemp("planted"))
