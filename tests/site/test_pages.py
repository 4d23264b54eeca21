"""Pages that are made from the code, and the navigation over all pages."""

from pathlib import Path
from typing import Any

import pytest
import tomli
from tools.site.commands import command_page
from tools.site.pages import FROM_ROOT, ROOT
from tools.site.python_page import ROOMS, python_page
from typer.main import get_command

import foci
from foci.cli import app

MADE = {*FROM_ROOT.values(), "commands.md", "python.md"}


def entries(navigation: list[dict[str, Any]]) -> list[str]:
    targets = [target for entry in navigation for target in entry.values()]
    return [name for t in targets for name in (entries(t) if isinstance(t, list) else [t])]


def test_every_page_stands_in_the_navigation_once() -> None:
    settings = tomli.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))
    notebooks = {f"notebooks/{path.stem}.md" for path in (ROOT / "docs").rglob("*.ipynb")}
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} | MADE | notebooks
    assert sorted(entries(settings["project"]["nav"])) == sorted(pages)


def test_every_command_and_option_is_listed() -> None:
    page = command_page()
    group: Any = get_command(app)
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            continue
        section = page.partition(f"## foci {name}\n")[2].partition("\n## ")[0]
        assert section, name
        for one in command.params:
            shown = one.opts[0] if one.param_type_name == "option" else one.name.upper()
            assert getattr(one, "hidden", False) or shown in section, (name, shown)


@pytest.fixture(scope="module")
def python() -> str:
    return python_page(Path(ROOT / "src"))


def test_every_public_name_has_its_entry(python: str) -> None:
    for room in ROOMS:
        names = getattr(foci, room).__all__
        missing = [name for name in names if f"\n### foci.{room}.{name}\n" not in python]
        assert missing == [], room
    rooms = {name for name in foci.__all__ if name.islower() and name != "audit"}
    assert rooms == set(ROOMS)


def test_an_entry_has_signature_arguments_and_example(python: str) -> None:
    entry = python.partition("### foci.metrics.msk\n")[2].partition("\n### ")[0]
    assert "foci.metrics.msk(probs, ks, target, kappa=" in entry
    assert "| `target` |" in entry
    assert "```python\n>>> " in entry
    assert "``" not in entry.replace("```", "")
