"""Progress is shown where somebody looks on."""

import sys
from types import ModuleType
from typing import Any

import pytest
import rich.console

import foci.api
import foci.progress
from foci.progress import Progress, is_shown, showing, track


def on_terminal(monkeypatch: pytest.MonkeyPatch, yes: bool) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: yes, raising=False)


def in_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    monkeypatch.setattr(rich.console, "_is_jupyter", lambda: True)


def shown(progress: Progress | bool | None = None) -> Any:
    """What shows a loop inside a block."""
    with showing(progress):
        return foci.progress._shown.get()


def test_by_default_it_is_shown_on_a_terminal_and_in_a_notebook(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on_terminal(monkeypatch, False)
    assert shown() is None
    in_notebook(monkeypatch)
    assert shown() is foci.progress._display
    monkeypatch.delitem(sys.modules, "ipykernel")
    assert shown() is None
    on_terminal(monkeypatch, True)
    assert shown() is foci.progress._display


def test_it_can_be_switched_on_and_off_or_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    on_terminal(monkeypatch, True)
    assert shown(False) is None
    on_terminal(monkeypatch, False)
    assert shown(True) is foci.progress._display
    seen: list[str] = []

    def own(items: Any, what: str) -> Any:
        seen.append(what)
        return items

    with showing(own):
        assert is_shown()
        with showing(False):
            assert not is_shown()
            assert list(track([1, 2], "inside")) == [1, 2]
        assert list(track([1, 2], "outside")) == [1, 2]
    assert list(track([1, 2], "after")) == [1, 2]
    assert seen == ["outside"]


def test_a_terminal_gets_a_bar_and_a_file_plain_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(foci.progress, "_SECONDS_BETWEEN_LINES", -1.0)
    on_terminal(monkeypatch, False)
    with showing(True):
        assert list(track([1, 2], "reading")) == [1, 2]
    assert "reading: 1/2, " in capsys.readouterr().err
    on_terminal(monkeypatch, True)
    with showing(True):
        assert list(track([1, 2], "reading")) == [1, 2]
    drawn = capsys.readouterr().err
    assert "reading" in drawn
    assert "1/2," not in drawn


@pytest.mark.parametrize("widgets", [True, False])
def test_a_notebook_without_widgets_gets_plain_lines(
    monkeypatch: pytest.MonkeyPatch, widgets: bool
) -> None:
    on_terminal(monkeypatch, False)
    in_notebook(monkeypatch)
    monkeypatch.setattr(foci.progress, "find_spec", lambda name: object() if widgets else None)
    for way in ("bar", "lines"):
        monkeypatch.setattr(foci.progress, f"_{way}", lambda items, what, way=way: way)
    with showing(True):
        assert track([1, 2], "reading") == ("bar" if widgets else "lines")


@pytest.mark.parametrize(("given", "is_on"), [(None, False), (True, True), (False, False)])
def test_an_audit_in_python_switches_it_on(
    monkeypatch: pytest.MonkeyPatch, given: bool | None, is_on: bool
) -> None:
    on_terminal(monkeypatch, False)
    got: list[bool] = []

    def run(*arguments: Any, **options: Any) -> Any:
        got.append(is_shown())
        raise RuntimeError("stop here")

    monkeypatch.setattr(foci.api, "run", run)
    monkeypatch.setattr(foci.api, "open_sources", lambda *given, **options: None)
    with pytest.raises(RuntimeError, match="stop here"):
        foci.audit("m", None, **({} if given is None else {"progress": given}))  # type: ignore[arg-type]
    assert got == [is_on]
