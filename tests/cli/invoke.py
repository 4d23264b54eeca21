"""Runs a command in this process, as the entry point would."""

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from foci.cli import main


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


class Foci:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *arguments: str | Path) -> Outcome:
        self._monkeypatch.setattr(sys, "argv", ["foci", *map(str, arguments)])
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main()
        said = self._capsys.readouterr()
        code = left.value.code
        return Outcome(code if isinstance(code, int) else 0, said.out, said.err)
