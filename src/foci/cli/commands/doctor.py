"""``foci doctor``."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foci.cli.options import COHORT, Given, with_settings
from foci.cli.terminal import starting
from foci.errors import FociError, printable
from foci.words import counted

if TYPE_CHECKING:
    from foci.bags.doctor import Check


@with_settings(
    without=("classes", "n_cap"),
    features=replace(COHORT["features"], argument=True),
)
def doctor(
    given: Given,
    sample: Annotated[
        int | None,
        typer.Option(min=1, help="Read only this many files, spread over the folder."),
    ] = None,
    slides: Annotated[
        Path | None, typer.Option(help="Folder of whole-slide images to check the bags against.")
    ] = None,
    plugins: Annotated[
        bool, typer.Option("--plugins", help="List the plug-ins of installed packages instead.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Check a feature folder and its label table before spending hours on them.

    Exit code 1 if any check fails.
    """
    if plugins:
        _show_plugins(as_json)
        return
    if "features" not in given:
        raise FociError("FEATURES", "is missing", "give the folder, or --plugins")
    starting("looking at the cohort")
    from foci.bags.cohort import CohortOptions
    from foci.bags.doctor import examine
    from foci.configuration import configure

    options = configure(CohortOptions, given)
    checks = examine(options, sample=sample)
    if slides is not None:
        from foci.slides.checks import check_slides

        checks += check_slides(options, slides, sample=sample)
    if as_json:
        typer.echo(json.dumps([asdict(check) for check in checks], indent=2))
    else:
        show(checks, options.features)
    if any(check.status == "FAIL" for check in checks):
        raise typer.Exit(1)


def _show_plugins(as_json: bool) -> None:
    """Load every plug-in of an installed package, and say where it comes from."""
    from foci.backbones import ARCHITECTURES
    from foci.bags.layouts import LAYOUTS
    from foci.rankings import available
    from foci.rankings.registry import RANKINGS
    from foci.registry import GROUPS, Registry, find_plugins
    from foci.slides.encoders import ENCODERS

    registries: tuple[Registry[Any], ...] = (ARCHITECTURES, RANKINGS, LAYOUTS, ENCODERS)
    rows = []
    logging.disable(logging.WARNING)  # the list says what cannot be loaded
    available()  # FOCI's own rankings first
    for group, registry in zip(GROUPS, registries, strict=True):
        failed = registry.with_plugins().failed
        for one in find_plugins(group):
            why = failed.get(one.name)
            state = "loads" if why is None else f"{why.what}; {why.fix}"
            rows.append(
                {"group": group, "name": one.name, "value": one.value, "package": one.package,
                 "folder": one.folder, "state": state}
            )  # fmt: skip
    logging.disable(logging.NOTSET)
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        place = f"{row['package']} in {row['folder']}"
        typer.echo(
            printable(f"{row['group']} {row['name']}: {row['value']} of {place}: {row['state']}")
        )
    if not rows:
        typer.echo(f"No installed package adds plug-ins ({', '.join(GROUPS)}).")


def show(checks: list[Check], features: Path) -> None:
    """Print the checks as a table, and a conclusion."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    colours = {"PASS": "green", "WARN": "yellow", "FAIL": "red bold"}
    table = Table(
        box=None, pad_edge=False, title=Text(printable(str(features))), title_justify="left"
    )
    for column in ("", "check", "found", "what to do"):
        table.add_column(column, overflow="fold")
    for check in checks:
        status = Text(check.status, style=colours[check.status])
        table.add_row(status, check.name, Text(printable(check.detail)), Text(check.fix))
    console = Console(width=None if Console().is_terminal else 120)
    console.print(table)
    failed = sum(check.status == "FAIL" for check in checks)
    warned = sum(check.status == "WARN" for check in checks)
    warnings = counted(warned, "warning")
    if failed:
        console.print(f"\nNot ready: {failed} failed, {warnings}.")
    else:
        console.print(f"\nReady to use, {warnings}." if warned else "\nReady to use.")
