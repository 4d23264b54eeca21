"""The documentation names every ranking and its examples run."""

import doctest
from pathlib import Path

import pytest

from foci.rankings import RANKINGS

PAGE = Path(__file__).parents[2] / "docs" / "rankings.md"
FLAGS = doctest.ELLIPSIS


@pytest.mark.parametrize("name", RANKINGS.names())
def test_every_ranking_has_a_row_and_a_section_with_an_example(name: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert f"| [`{name}`](#{name}) |" in page
    section = page.split(f"\n### {name}\n")[1].split("\n#")[0]
    assert f'rankings.score("{name}", model, ' in section


def test_examples_run() -> None:
    try:
        failed, tried = doctest.testfile(str(PAGE), module_relative=False, optionflags=FLAGS)
    finally:
        RANKINGS._entries.pop("darkest-first", None)
    assert (failed, tried > 20) == (0, True)
