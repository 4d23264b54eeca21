"""Packages are layers: the contracts in pyproject.toml hold, and CONTRIBUTING.md lists them."""

import logging
import re
from collections.abc import Iterator

import pytest
from importlinter.application.use_cases import create_report, read_user_options
from importlinter.cli import lint_imports
from importlinter.configuration import configure
from tools.architecture_picture import ROOT, layers


@pytest.fixture(autouse=True)
def loggers() -> Iterator[None]:
    """import-linter disables all loggers that exist; tests that follow read FOCI's."""
    known = logging.root.manager.loggerDict.values()
    before = [one for one in known if isinstance(one, logging.Logger) and not one.disabled]
    yield
    for one in before:
        one.disabled = False


def test_the_import_contracts_hold() -> None:
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


def test_the_graph_behind_the_contracts_is_the_whole_package() -> None:
    configure()
    report = create_report(read_user_options(str(ROOT / "pyproject.toml")), cache_dir=None)
    assert report.module_count == len(list((ROOT / "src" / "foci").rglob("*.py")))
    assert len(list(report.get_contracts_and_checks())) == 3


def test_every_package_is_a_layer() -> None:
    packages = {path.parent.name for path in (ROOT / "src" / "foci").glob("*/__init__.py")}
    assert packages == {name for name in layers() if name != "api"}


def test_contributing_lists_the_packages_in_order() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)/` \|", text, flags=re.MULTILINE)
    assert listed == [name for name in layers() if name != "api"]
