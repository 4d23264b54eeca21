"""Name an HTML page on the command line: its file name, its link, and what to type next."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from foci import viewer
from foci.errors import FociError, printable

if TYPE_CHECKING:
    from foci.studies.folder import StudyFolder


def page(out: Path | None) -> Path | None:
    """The given file, if its name is that of an HTML page, so that no other file is overwritten.

    >>> page(Path("summary.json"))
    Traceback (most recent call last):
    foci.errors.FociError: --out summary.json: is not an HTML file; give a name that ends in .html
    """
    if out is not None and (out.suffix.lower() not in (".html", ".htm") or out.is_dir()):
        fix = "give a name that ends in .html"
        raise FociError(f"--out {out}", "is not an HTML file", fix)
    return out


def say_pages(*pages: Path) -> None:
    """Print every page as a link, which terminals open on a click."""
    for one in pages:
        typer.echo(f"open {one.resolve().as_uri()}")


def say_next(*steps: Sequence[str | Path]) -> None:
    """Print what to type next, one command per line, ready to paste.

    Where the server of ``foci view`` is not installed, its installation comes first.

    >>> say_next(["foci", "view", Path("my audit")], ["foci", "report", "a", "--kappa", "0.8"])
    next foci view 'my audit'
         foci report a --kappa 0.8
    """
    commands = [shlex.join(str(word) for word in step) for step in steps]
    if any(step[:2] == ["foci", "view"] for step in steps) and find_spec("uvicorn") is None:
        commands.insert(0, f"pip install '{viewer.EXTRA}'")
    for i, command in enumerate(commands):
        typer.echo(printable(f"{'next' if i == 0 else '    '} {command}"))


def say_study_page(study: StudyFolder, page: Path) -> None:
    """Print the page of a study as a link, and the first audit to look at; or how to run it."""
    from foci.studies.readings.study import audit_folders

    say_pages(page)
    found = [folder for by_seed in audit_folders(study).values() for folder in by_seed.values()]
    say_next(["foci", "view", found[0]] if found else ["foci", "study", "run", study.path])
