"""The ``foci`` command line.

Every command has its own file and imports what it needs when it runs, so that ``foci --help`` is
fast and does not load torch.
"""

from __future__ import annotations

import errno
import os
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
from foci.cli.help import FociTyper, grouped
from foci.cli.terminal import logged, messages, prepared
from foci.errors import FociError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_LOCKED = (errno.EACCES, errno.EPERM, errno.EROFS)

app = FociTyper(
    name="foci",
    help="Which tiles suffice for a frozen whole-slide classifier, and can its map be believed?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(grouped(encode.encode))
app.command()(grouped(doctor.doctor))
app.command()(grouped(cohort.cohort))
app.command()(grouped(train.train))
app.command()(grouped(fit.fit))
app.command()(grouped(audit.audit))
app.command()(grouped(report.report))
app.command()(grouped(view.view))
app.command()(grouped(export.export))
app.command()(grouped(compare.compare))
app.add_typer(study.app, name="study")
app.command()(grouped(demo.demo))


@app.callback(invoke_without_command=True)
def version(
    show: bool = typer.Option(False, "--version", help="Show the version and exit."),
) -> None:
    """Show the version."""
    if show:
        from foci._version import __version__

        typer.echo(f"foci {__version__}")
        raise typer.Exit


def main() -> None:
    """Entry point; an error of ours or of the system is one line and exit code 2."""
    try:
        with prepared(), logged(), messages():
            app()
    except FociError as error:
        _end(error)
    except OSError as error:
        _end(_refused(error))
    except (MemoryError, RuntimeError) as error:
        if not _out_of_memory(error):
            raise
        _end(FociError("memory", "is used up", "free some, or choose smaller --n-cap or --k-max"))
    except KeyboardInterrupt:
        sys.stderr.write("foci: stopped\n")
        sys.exit(130)


def _end(error: FociError) -> NoReturn:
    sys.stderr.write(f"foci: {error}\n")
    sys.exit(2)


def _out_of_memory(error: MemoryError | RuntimeError) -> bool:
    """Whether Python, or torch on a CPU or GPU, could not allocate."""
    said = type(error).__name__ == "OutOfMemoryError" or "can't allocate memory" in str(error)
    return said or isinstance(error, MemoryError)


def _refused(error: OSError) -> FociError:
    """An OSError as one line: which file, why, what to do."""
    where = "a file" if error.filename is None else str(error.filename)
    if error.errno is None:
        return FociError(where, str(error) or type(error).__name__, "try again")
    what = os.strerror(error.errno).lower()
    if error.errno in _FULL:
        return FociError(where, what, "free some space and give the same command again")
    if error.errno in _LOCKED:
        return FociError(where, what, "check its permissions, or choose another --out")
    return FociError(where, what, "check the path, or choose another --out")
