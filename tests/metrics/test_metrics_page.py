"""The documentation names every metric and its examples run."""

import doctest
from pathlib import Path

import pytest

from foci.metrics import CARDS

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


@pytest.mark.parametrize("name", CARDS)
def test_every_metric_has_a_section_with_an_example(name: str) -> None:
    sections = PAGE.read_text().split("\n### ")[1:]
    section = {text.partition("\n")[0]: text for text in sections}[name]
    assert ">>>" in section
    assert f"metrics.{name}(" in section


def test_examples_run() -> None:
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)
    assert (failed, tried > 50) == (0, True)
