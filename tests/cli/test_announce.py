"""The first line of a command, before torch is loaded."""

import ast
import sys
from pathlib import Path

import pytest

import foci.cli.commands
from foci.cli.terminal import starting


@pytest.mark.parametrize("terminal", [True, False])
def test_the_first_line_is_for_terminals(
    terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    starting("loading the cohort")
    assert capsys.readouterr() == ("", "loading the cohort ...\n" if terminal else "")


def commands() -> list[tuple[str, ast.FunctionDef]]:
    """Every function that is a command, by the file it is in."""
    folder = Path(foci.cli.commands.__file__).parent
    found = []
    for path in sorted(folder.rglob("*.py")):
        tree = ast.parse(path.read_text())
        own = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        found += [(path.stem, node) for node in own if node.name == path.stem]
    return found


@pytest.mark.parametrize(("name", "command"), commands(), ids=[name for name, _ in commands()])
def test_every_command_speaks_before_it_imports(name: str, command: ast.FunctionDef) -> None:
    for node in command.body:
        call = getattr(node, "value", None)
        if isinstance(call, ast.Call) and getattr(call.func, "id", None) == "starting":
            return
        assert not isinstance(node, ast.ImportFrom | ast.Import), f"{name} imports in silence"
