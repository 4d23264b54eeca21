"""The documentation names every recipe as it is, and its examples run."""

import doctest
from pathlib import Path

import pytest

from foci.selectors import DEFAULT, RECIPES

PAGE = Path(__file__).parents[2] / "docs" / "selector.md"


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_has_its_row(name: str) -> None:
    row = next(r for r in PAGE.read_text().splitlines() if r.startswith(f"| `{name}` |"))
    _, gate, site, budget, head, *_ = (cell.strip() for cell in row.strip("|").split("|"))
    recipe = RECIPES[name]
    assert gate.startswith({"ste": "hard", "soft": "Gumbel"}[recipe.gate.kind])
    assert site == recipe.sites[0]
    assert head == ("one score per class" if recipe.class_conditional else "one score")
    if recipe.gate.kind == "ste":
        start = {"fixed": "K = 32", "adaptive": "max(16", "nested": "K drawn"}[recipe.budget.kind]
        assert budget.startswith(start)


def test_the_default_is_named() -> None:
    assert f"`default` stands for `{DEFAULT}`" in PAGE.read_text()


def test_examples_run() -> None:
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)
    assert failed == 0
    assert tried >= 3
