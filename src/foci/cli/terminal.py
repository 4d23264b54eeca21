"""What reaches the terminal: safe text, FOCI's messages and log, pages and what to type next."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import typer

from foci import viewer
from foci.errors import FociError, printable
from foci.files.run_log import in_plain_words
from foci.progress import is_shown, showing

if TYPE_CHECKING:
    from foci.audits import StoredAudit
    from foci.bags import Cohort
    from foci.studies.plan import StudyFolder

MANY_SKIPPED_CODE = 3
"""Exit code of a command that has finished, but skipped more than 10 % of the slides."""

LOG = "FOCI_LOG"
"""Environment variable: file that gets the tracebacks of unforeseen errors."""

_COLOUR = re.compile("(\x1b\\[[0-9;]*m)")


class _Escaping:
    """A text stream that escapes control characters, except for colours, line ends and TABs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @property
    def encoding(self) -> str:
        """UTF-8: whatever the terminal cannot show is escaped below, not by the caller."""
        return "utf-8"

    def write(self, text: str) -> int:
        """Write text to the stream below."""
        return self._stream.write(safe(text))


def safe(text: str) -> str:
    r"""Text without control characters other than colours, line ends and TABs.

    >>> print(safe("a\x07b\rc"))
    a\x07b\rc
    """
    if text.replace("\n", "").isprintable():
        return text
    return "".join(
        piece
        if _COLOUR.fullmatch(piece)
        else "".join(c if c in "\n\t" else printable(c) for c in piece)
        for piece in _COLOUR.split(text)
    )


@contextlib.contextmanager
def prepared() -> Iterator[None]:
    """Standard output that never fails on a letter and passes no control characters on."""
    plain = sys.stdout
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    sys.stdout = _Escaping(plain)
    try:
        yield
    finally:
        sys.stdout = plain


@contextlib.contextmanager
def logged() -> Iterator[None]:
    """Write FOCI's log to the file that ``FOCI_LOG`` names; without one it is discarded."""
    place = os.environ.get(LOG)
    if not place:
        yield
        return
    try:
        handler = logging.FileHandler(place, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        what = f"{place} cannot be written ({error.strerror})"
        raise FociError(LOG, what, "name another file") from None
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    with _handled_by(handler):
        yield


class _Lines(logging.Handler):
    """Prints a message as one line; tracebacks are for ``FOCI_LOG``."""

    def emit(self, record: logging.LogRecord) -> None:
        if is_shown() and not record.exc_info:
            say(in_plain_words(record))


@contextlib.contextmanager
def messages() -> Iterator[None]:
    """Print FOCI's messages and show progress, except in blocks of ``showing(False)``."""
    with _handled_by(_Lines(logging.INFO)), showing(True):
        yield


@contextlib.contextmanager
def _handled_by(handler: logging.Handler) -> Iterator[None]:
    logger = logging.getLogger("foci")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()


def starting(what: str) -> None:
    """Say on a terminal what a command does before it imports torch, which takes seconds.

    In a pipe an error stays the only line.
    """
    if sys.stderr.isatty():
        typer.echo(f"{what} ...", err=True)


def say(line: str) -> None:
    """Print one line; control characters in it, of a slide's name for instance, are escaped."""
    typer.echo(printable(line))


@contextlib.contextmanager
def resumable(stopped: Callable[[], str] | None = None) -> Iterator[None]:
    """Answer Ctrl-C and SIGTERM with one line: what is kept, and how to resume."""
    try:
        yield
    except KeyboardInterrupt as error:
        stop(
            error, "stopped; run the same command again to resume" if stopped is None else stopped()
        )


class _Interrupt(KeyboardInterrupt):
    """Ctrl-C or SIGTERM; its argument is the signal's number.

    Where Python's own KeyboardInterrupt has gone through ``exec``, as dataclasses use it while
    torch is loaded, Python ends with the wrong exit code, even if the exception was caught.
    """


AGAIN = 1.0
"""Seconds after which an interrupt that nothing is handling is raised once more."""


@contextlib.contextmanager
def terminated() -> Iterator[None]:
    """Inside the block SIGTERM stops a command as Ctrl-C does, with a line and tidied up.

    Callbacks and bare ``except`` clauses of other packages swallow the exception, mostly while they
    are imported. So a timer raises it again until it is being handled.
    """
    got: list[int] = []

    def interrupt(number: int, frame: object) -> NoReturn:
        got.append(number)
        if sys.platform != "win32":
            signal.setitimer(signal.ITIMER_REAL, AGAIN, AGAIN)
        raise _Interrupt(number)

    def again(number: int, frame: object) -> None:
        error = sys.exception()
        while error is not None and not isinstance(error, _Interrupt):
            error = error.__context__
        if error is None:
            raise _Interrupt(got[-1])

    handlers: dict[signal.Signals, Any] = dict.fromkeys((signal.SIGINT, signal.SIGTERM), interrupt)
    if sys.platform != "win32":
        handlers[signal.SIGALRM] = again
    before = {number: signal.getsignal(number) for number in handlers}
    for number, handler in handlers.items():
        if before[number] is not signal.SIG_IGN:  # of a command in the background
            signal.signal(number, handler)
    try:
        yield
    finally:
        if sys.platform != "win32":
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def stop(error: KeyboardInterrupt, line: str = "stopped") -> NoReturn:
    """End with one line, and with exit code 130 after Ctrl-C, 143 after SIGTERM, as of a shell."""
    typer.echo(f"foci: {line}", err=True)
    sys.exit(128 + int(error.args[0] if error.args else signal.SIGINT))


def end_if_many_skipped(cohort: Cohort) -> None:
    """End a command that has done its work, with exit code 3 if over 10 % were skipped."""
    from foci.bags.bag import many_skipped

    if many_skipped(len(cohort.skipped), len(cohort) + len(cohort.skipped)) is not None:
        raise typer.Exit(MANY_SKIPPED_CODE)


def open_audit(folder: Path, accept_changed: bool) -> StoredAudit:
    """A finished audit; if its changed files are accepted, each of them is printed."""
    from foci.audits import StoredAudit

    audit = StoredAudit.load(folder, accept_changed=accept_changed)
    for name in audit.changed:
        say(f"changed since the audit wrote it: {audit.folder / name}")
    return audit


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
    from foci.studies.read import audit_folders

    say_pages(page)
    found = [folder for by_seed in audit_folders(study).values() for folder in by_seed.values()]
    say_next(["foci", "view", found[0]] if found else ["foci", "study", "run", study.path])
