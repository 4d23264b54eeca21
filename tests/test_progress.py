"""Progress is shown where somebody looks on."""

import sys
from types import ModuleType
from typing import Any

import pytest
import rich.console

import foci.api
from foci import progress
from foci.progress import chosen_progress, silent, track


def on_terminal(monkeypatch: pytest.MonkeyPatch, yes: bool) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: yes, raising=False)


def in_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    monkeypatch.setattr(rich.console, "_is_jupyter", lambda: True)


def test_by_default_it_is_shown_on_a_terminal_and_in_a_notebook(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on_terminal(monkeypatch, False)
    assert chosen_progress(None) is silent
    in_notebook(monkeypatch)
    assert chosen_progress(None) is track
    monkeypatch.delitem(sys.modules, "ipykernel")
    assert chosen_progress(None) is silent
    on_terminal(monkeypatch, True)
    assert chosen_progress(None) is track


def test_it_can_be_switched_on_and_off_or_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    on_terminal(monkeypatch, True)
    assert chosen_progress(False) is silent
    on_terminal(monkeypatch, False)
    assert chosen_progress(True) is track

    def own(items: Any, what: str) -> Any:
        return items

    assert chosen_progress(own) is own


def test_a_terminal_gets_a_bar_and_a_file_plain_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", -1.0)
    on_terminal(monkeypatch, False)
    assert list(track([1, 2], "reading")) == [1, 2]
    assert "reading: 1/2, " in capsys.readouterr().err
    on_terminal(monkeypatch, True)
    assert list(track([1, 2], "reading")) == [1, 2]
    shown = capsys.readouterr().err
    assert "reading" in shown
    assert "1/2," not in shown


@pytest.mark.parametrize("widgets", [True, False])
def test_a_notebook_without_widgets_gets_plain_lines(
    monkeypatch: pytest.MonkeyPatch, widgets: bool
) -> None:
    on_terminal(monkeypatch, False)
    in_notebook(monkeypatch)
    monkeypatch.setattr(progress, "find_spec", lambda name: object() if widgets else None)
    for way in ("bar", "lines"):
        monkeypatch.setattr(progress, f"_{way}", lambda items, what, way=way: way)
    assert track([1, 2], "reading") == ("bar" if widgets else "lines")


@pytest.mark.parametrize(("given", "passed"), [(None, silent), (True, track), (False, silent)])
def test_an_audit_in_python_passes_it_on(
    monkeypatch: pytest.MonkeyPatch, given: bool | None, passed: object
) -> None:
    on_terminal(monkeypatch, False)
    got: list[object] = []

    def run(*arguments: Any, **options: Any) -> Any:
        got.append(options["progress"])
        raise RuntimeError("enough")

    monkeypatch.setattr(foci.api, "run", run)
    monkeypatch.setattr(foci.api, "_opened", lambda *given: (None, None, {}))
    with pytest.raises(RuntimeError, match="enough"):
        foci.audit("m", None, **({} if given is None else {"progress": given}))  # type: ignore[arg-type]
    assert got == [passed]
