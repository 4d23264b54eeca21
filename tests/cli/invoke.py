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

    def done(self, *arguments: str | Path) -> Outcome:
        """Of a command that does its work, with exit code 0."""
        outcome = self(*arguments)
        assert outcome.code == 0, outcome.out + outcome.err
        return outcome

    def refused(self, *arguments: str | Path) -> str:
        """The one line of a command that is refused, with exit code 2."""
        outcome = self(*arguments)
        assert outcome.code == 2, outcome.out + outcome.err
        assert outcome.err.startswith("foci: ")
        assert outcome.err.count("\n") == 1
        return outcome.err


RUNS: dict[str, tuple[str, ...]] = {
    "audit": ("--model", "abmil", "--rankings", "native,random", "--random-orders", "2",
              "--set", "n_boot=20"),
    "train": ("abmil", "--epochs", "1", "--set", "d=16", "--set", "hidden=8"),
    "fit": ("abmil", "--set", "schedule.epochs=1", "--set", "schedule.warmup=0"),
}  # fmt: skip
"""Short runs of three commands in the folder of the fixture ``project``."""


def short_run(command: str, out: str) -> list[str]:
    """One of them, with the cohort and its output folder."""
    return [
        command,
        *RUNS[command],
        "--features",
        "features",
        "--labels",
        "labels.csv",
        "--out",
        out,
    ]
