"""One finished study for all tests of tables."""

from pathlib import Path

import pytest

from foci.studies.table import Table
from foci.studies.tables import StudyTables, build
from tests.makers.finished_study import finished


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    finished(folder)
    return folder


@pytest.fixture(scope="session")
def built(study: Path) -> StudyTables:
    from foci.studies.plan import StudyFolder

    return build(StudyFolder(study))


@pytest.fixture(scope="session")
def tables(built: StudyTables) -> dict[str, Table]:
    return {table.label: table for table in built.tables}
