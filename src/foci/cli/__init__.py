"""The ``foci`` command line.

Every command has its own file and imports what it needs when it runs, so that ``foci --help`` is
fast and does not load torch.
"""

from __future__ import annotations

import errno
import os
import platform
import sys
from typing import NoReturn

import typer

from foci.cli.commands import (
    audit,
    cohort,
    compare,
    demo,
    doctor,
    encode,
    export,
    fit,
    report,
    study,
    train,
    view,
)
from foci.cli.options import FociTyper
from foci.cli.terminal import logged, messages, prepared, stop, terminated
from foci.errors import FociError, printable

_PACKAGES = (
    "torch", "numpy", "timm", "openslide-python", "starlette", "matplotlib", "captum", "ray",
)  # fmt: skip
"""Packages named by ``--version``: what computes, then one of every extra."""

app = FociTyper(
    encode.encode,
    doctor.doctor,
    cohort.cohort,
    train.train,
    fit.fit,
    audit.audit,
    report.report,
    view.view,
    export.export,
    compare.compare,
    demo.demo,
    name="foci",
    help="Which tiles suffice for a frozen whole-slide classifier, and can its map be believed?",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(study.app, name="study")
app.alias("audit-shard", audit.audit)  # in the elements of an array job


@app.callback(invoke_without_command=True)
def version(
    show: bool = typer.Option(False, "--version", help="Show the version and exit."),
) -> None:
    """Show the version, and those of what an audit's numbers and features may depend on."""
    if not show:
        return
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    from foci._version import __version__

    typer.echo(f"foci {__version__}, Python {platform.python_version()}")
    for package in _PACKAGES:
        try:
            typer.echo(f"{package} {installed(package)}")
        except PackageNotFoundError:
            typer.echo(f"{package} is not installed")
    raise typer.Exit


def main() -> None:
    """Entry point; an error of ours or of the system is one line and exit code 2."""
    try:
        with prepared(), logged(), messages(), terminated():
            for word in sys.argv:
                _check_text(word)
            app()
    except FociError as error:
        _end(error)
    except OSError as error:
        _end(_refused(error))
    except (MemoryError, RuntimeError) as error:
        on_gpu = type(error).__name__ == "OutOfMemoryError"
        on_cpu = "can't allocate memory" in str(error)
        if not (isinstance(error, MemoryError) or on_gpu or on_cpu):
            raise
        _end(FociError("memory", "is used up", "free some, or choose smaller --n-cap or --k-max"))
    except KeyboardInterrupt as error:
        stop(error)
    except SystemExit as end:  # typer ends without a word
        cause = end.__context__ and end.__context__.__cause__
        if isinstance(cause, KeyboardInterrupt):
            stop(cause)
        raise


def _check_text(word: str) -> None:
    """Refuse a path that is no UTF-8: no page, log or record could name it."""
    try:
        word.encode()
    except UnicodeEncodeError:
        raise FociError(printable(word), "is not UTF-8 text", "rename the file or folder") from None


def _end(error: FociError) -> NoReturn:
    sys.stderr.write(f"foci: {error}\n")
    sys.exit(2)


def _refused(error: OSError) -> FociError:
    """An OSError as one line: which file, why, what to do."""
    where = "a file" if error.filename is None else str(error.filename)
    if error.errno is None:
        return FociError(where, str(error) or type(error).__name__, "try again")
    what = os.strerror(error.errno).lower()
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return FociError(where, what, "free some space and run the same command again")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return FociError(where, what, "check its permissions, or choose another --out")
    return FociError(where, what, "check the path, or choose another --out")
