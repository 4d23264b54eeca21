"""Run the commands of the tutorial, and compare or renew the outputs that the page shows.

    python -m tools.site.tutorial

runs every command of ``docs/tutorial.md`` in an empty folder and writes what it says into the page.
Where the page ends an output with a line of three dots, only as many paragraphs are shown as now.
"""

from __future__ import annotations

import os
import re
import runpy
import shlex
import sys
import tempfile
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import foci.cli
from foci.processes import preload, warm_context
from tools.site.pages import DOCS

PAGE = DOCS / "tutorial.md"
FENCE = re.compile(r"```console\n(.*?)```", re.DOTALL)
SCRIPT = re.compile(r'```python title="([\w.]+)"\n(.*?)```', re.DOTALL)
NUMBER = re.compile("[-\u2212+]?" r"\d[\d,]*(?:\.\d+)?")
FOLDER = re.compile(r"/\S*/")
PROGRESS = re.compile(r".+: \d+/\d+, .+ left\s*")
"""A line that only a slow machine prints."""
SECONDS = re.compile(r"\d+(?:\.\d+)? (?:s|min)\b")
HOME = "/home/you"
"""What the page shows in the place of the folder that the commands ran in."""
DOTS = "\n\n...\n"
"""How the page ends an output that it does not show to the end."""


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
    preload()
    return [_said(step.command, folder) for step in steps(text)]


def renewed(text: str, said: list[str]) -> str:
    """The page with other outputs."""
    outputs = iter(zip(steps(text), said, strict=True))

    def block(found: re.Match[str]) -> str:
        members = len(re.findall(r"^\$ ", found[1], flags=re.MULTILINE))
        parts = (next(outputs) for _ in range(members))
        texts = (f"$ {s.command}\n{shortened(s.shown, output)}" for s, output in parts)
        return "```console\n" + "".join(texts) + "```"

    return FENCE.sub(block, text)


def shortened(shown: str, said: str) -> str:
    r"""What a page shows of an output: all of it, or its first paragraphs and a line of dots.

    >>> shortened("a\n\nb\n\n...\n", "c\n\nd\n\ne\n\nf\n")
    'c\n\nd\n\n...\n'
    """
    if not shown.endswith(DOTS):
        return said
    return "\n\n".join(said.split("\n\n")[: shown.count("\n\n")]) + DOTS


def differences(shown: str, said: str) -> list[str]:
    """Where two outputs differ by more than a time, a folder, or what processors round differently.

    Words have to be the same; where lines are broken does not matter. A number may differ by a
    tenth, or by 0.05 where it has decimals: training amplifies the last bit of a sum, and
    processors disagree about that bit.
    """
    here, there = (_parts(text) for text in (shown, shortened(shown, said)))
    for number, (a, b) in enumerate(zip_longest(here, there, fillvalue="(the end)")):
        if not _same(a, b):
            before = " ".join(here[max(0, number - 8) : number])
            return [f"after {before!r}: {b!r} instead of {a!r}"]
    return []


def _parts(text: str) -> list[str]:
    """Words and numbers in turn, without what changes from run to run."""
    steady = SECONDS.sub("T s", FOLDER.sub("", text))
    return NUMBER.sub(r" \g<0> ", steady).split()


def _same(shown: str, said: str) -> bool:
    if not NUMBER.fullmatch(shown) or not NUMBER.fullmatch(said):
        return shown == said
    a, b = (float(text.replace(",", "").replace("\u2212", "-")) for text in (shown, said))
    slack = 0.05 if "." in shown or "." in said else 0
    return abs(a - b) <= max(0.1 * abs(a), slack)


def _said(command: str, folder: Path) -> str:
    """What a command prints in a process of its own, forked off one that has loaded torch."""
    with tempfile.TemporaryDirectory() as scratch:
        printed = Path(scratch) / "printed"
        process = warm_context().Process(target=_perform, args=(command, folder, printed))
        process.start()
        process.join()
        text = printed.read_text(encoding="utf-8")
    if process.exitcode != 0:
        raise RuntimeError(f"{command} ended with {process.exitcode}: {text}")
    lines = text.replace(str(folder), HOME).splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines if not PROGRESS.fullmatch(line))


def _perform(command: str, folder: Path, printed: Path) -> None:
    import torch

    with printed.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.chdir(folder)
    os.environ.update(COLUMNS="100", FOCI_CACHE=str(folder / ".cache"))
    torch.set_num_threads(1)
    program, *arguments = shlex.split(command.replace("\\\n", " "))
    if program == "foci":
        sys.argv = [program, *arguments]
        foci.cli.main()
    else:
        sys.path.insert(0, str(folder))
        runpy.run_path(arguments[0], run_name="__main__")


def main() -> None:
    """Renew the outputs of the page."""
    text = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(renewed(text, run(text, Path(folder))), encoding="utf-8")


if __name__ == "__main__":
    main()
