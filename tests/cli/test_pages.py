"""What to type next, with what has to be installed for it."""

import pytest

from foci.cli import terminal
from foci.cli.terminal import say_next


def test_the_viewer_is_installed_first_where_it_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(terminal, "find_spec", lambda name: None)
    say_next(["foci", "view", "audit"], ["foci", "report", "audit"])
    assert capsys.readouterr().out.splitlines() == [
        "next pip install 'foci-mil[viewer]'",
        "     foci view audit",
        "     foci report audit",
    ]
    say_next(["foci", "report", "audit"])
    assert capsys.readouterr().out == "next foci report audit\n"


def test_with_the_viewer_there_is_nothing_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(terminal, "find_spec", lambda name: object())
    say_next(["foci", "view", "audit"])
    assert capsys.readouterr().out == "next foci view audit\n"
