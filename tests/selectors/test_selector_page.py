"""The documentation names every recipe as it is, and its examples run."""

import doctest
from pathlib import Path

import pytest

from foci.selectors import DEFAULT, RECIPES, recipe, vary

PAGE = Path(__file__).parents[2] / "docs" / "selector.md"


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_has_its_row(name: str) -> None:
    row = next(r for r in PAGE.read_text().splitlines() if r.startswith(f"| `{name}` |"))
    _, gate, site, budget, head, *_ = (cell.strip() for cell in row.strip("|").split("|"))
    chosen = RECIPES[name]
    assert gate.startswith({"ste": "hard", "soft": "Gumbel"}[chosen.gate.kind])
    assert site == chosen.sites[0]
    assert head == ("one score per class" if chosen.class_conditional else "one score")
    if chosen.gate.kind == "ste":
        start = {"fixed": "K = 32", "adaptive": "max(16", "octaves": "K drawn"}[chosen.budget.kind]
        assert budget.startswith(start)


def test_the_default_is_named() -> None:
    assert f"`default` stands for `{DEFAULT}`" in PAGE.read_text()


def test_examples_run() -> None:
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)
    assert failed == 0
    assert tried >= 3


def test_the_example_of_an_option_works_with_the_default() -> None:
    row = next(r for r in PAGE.read_text().splitlines() if r.startswith("| `--set "))
    key, value = row.split("`")[1].removeprefix("--set ").split("=")
    changed = vary(recipe(), {key: int(value)})
    assert changed.name == f"{DEFAULT} ({key}={value})"
