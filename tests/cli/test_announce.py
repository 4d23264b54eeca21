"""The first line of a command, before torch is loaded."""

import sys

import pytest

from foci.cli.announce import starting


@pytest.mark.parametrize("terminal", [True, False])
def test_the_first_line_is_for_terminals(
    terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    starting("loading the cohort")
    assert capsys.readouterr() == ("", "loading the cohort ...\n" if terminal else "")
