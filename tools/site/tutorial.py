"""Run the commands of the tutorial, and compare or renew the outputs that the page shows.

    python -m tools.site.tutorial

runs every command of ``docs/tutorial.md`` in an empty folder and writes what it says into the page.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tools.site.pages import DOCS

PAGE = DOCS / "tutorial.md"
FENCE = re.compile(r"```console\n(.*?)```", re.DOTALL)
SCRIPT = re.compile(r'```python title="([\w.]+)"\n(.*?)```', re.DOTALL)
NUMBER = re.compile("[-\u2212+]?" r"\d[\d,]*(?:\.\d+)?")
SECONDS = re.compile(r"\d+(?:\.\d+)? s\b")
STATES = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "COLUMNS": "100"}


@dataclass(frozen=True)
class Step:
    """A command of the page and what the page shows below it."""

    command: str
    shown: str


def steps(text: str) -> list[Step]:
    r"""The commands of a page in order; a block may hold several.

    >>> steps("```console\n$ foci a \\\n    b\nsaid\n$ foci c\n```")
    [Step(command='foci a \\\n    b', shown='said\n'), Step(command='foci c', shown='')]
    """
    found = []
    for block in FENCE.findall(text):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command = re.match(r"(?:.*\\\n)*.*\n?", part)
            size = command.end() if command else 0
            found.append(Step(part[:size].rstrip("\n"), part[size:]))
    return found


def run(text: str, folder: Path) -> list[str]:
    """Write the page's scripts to a folder, run its commands there, return what each says."""
    for name, script in SCRIPT.findall(text):
        (folder / name).write_text(script, encoding="utf-8")
    return [_said(step.command, folder) for step in steps(text)]


def renewed(text: str, said: list[str]) -> str:
    """The page with other outputs."""
    outputs = iter(zip(steps(text), said, strict=True))

    def block(found: re.Match[str]) -> str:
        members = len(re.findall(r"^\$ ", found[1], flags=re.MULTILINE))
        parts = (next(outputs) for _ in range(members))
        return "```console\n" + "".join(f"$ {s.command}\n{output}" for s, output in parts) + "```"

    return FENCE.sub(block, text)


def differences(shown: str, said: str) -> list[str]:
    """Lines that differ by more than a time, or than what another processor rounds differently.

    Words have to be the same. A number may differ by a tenth, or by 0.05 where it has decimals:
    training amplifies the last bit, and processors disagree about it.
    """
    here, there = (text.rstrip().splitlines() for text in (shown, said))
    if len(here) != len(there):
        return [f"{len(there)} lines instead of {len(here)}: {said}"]
    return [f"{b!r} instead of {a!r}" for a, b in zip(here, there, strict=True) if not _same(a, b)]


def _same(shown: str, said: str) -> bool:
    here, there = (SECONDS.sub("T s", line) for line in (shown, said))
    if _words(here) != _words(there):
        return False
    pairs = zip(NUMBER.findall(here), NUMBER.findall(there), strict=True)
    return all(_close(a, b) for a, b in pairs)


def _words(line: str) -> list[str]:
    return NUMBER.sub(" # ", line).split()


def _close(shown: str, said: str) -> bool:
    a, b = (float(text.replace(",", "").replace("\u2212", "-")) for text in (shown, said))
    slack = 0.05 if "." in shown or "." in said else 0
    return abs(a - b) <= max(0.1 * abs(a), slack)


def _said(command: str, folder: Path) -> str:
    program, *arguments = shlex.split(command.replace("\\\n", " "))
    programs = {"foci": [sys.executable, "-m", "foci"], "python": [sys.executable]}
    settings = {**os.environ, **STATES, "FOCI_CACHE": str(folder / ".cache")}
    done = subprocess.run(  # noqa: S603
        [*programs[program], *arguments],
        cwd=folder, env=settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        encoding="utf-8", check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise RuntimeError(f"{command} ended with {done.returncode}: {done.stdout}")
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


def main() -> None:
    """Renew the outputs of the page."""
    text = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(renewed(text, run(text, Path(folder))), encoding="utf-8")


if __name__ == "__main__":
    main()
