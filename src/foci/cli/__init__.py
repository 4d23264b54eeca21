"""Command line: parse, call, print.

Every command lives in a file of its own and imports what it needs when it runs, so that
``foci --help`` answers at once and does not load torch.
"""

from __future__ import annotations

import sys

import typer

from foci.cli import audit, cohort, compare, demo, doctor, fit, report, train
from foci.errors import FociError

app = typer.Typer(
    name="foci",
    help="Which tiles suffice for a frozen whole-slide classifier, and can its map be believed?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(doctor.doctor)
app.command()(cohort.cohort)
app.command()(train.train)
app.command()(fit.fit)
app.command()(audit.audit)
app.command()(report.report)
app.command()(compare.compare)
app.command()(demo.demo)


@app.callback(invoke_without_command=True)
def version(
    show: bool = typer.Option(False, "--version", help="Print the version and leave."),
) -> None:
    """Print the version."""
    if show:
        from foci import __version__

        typer.echo(f"foci {__version__}")
        raise typer.Exit


def main() -> None:
    """Entry point; a refusal is one line on standard error and exit code 2."""
    try:
        app()
    except FociError as error:
        sys.stderr.write(f"foci: {error}\n")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.stderr.write("foci: stopped\n")
        sys.exit(130)
