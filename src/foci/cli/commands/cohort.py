"""``foci cohort``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from foci.cli.terminal import starting
from foci.words import tally


def cohort(
    task: Annotated[
        Literal["nsclc", "brca", "panda"], typer.Argument(help="One of the paper's tasks.")
    ],
    sources: Annotated[
        list[str],
        typer.Argument(
            help="GDC sample sheets or manifests, folders of published UNI2-h features, PANDA's "
            "train.csv; LABEL=PATH if a source does not tell the class."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Label table to write.")] = Path("cohort.csv"),
    seed: Annotated[int, typer.Option(help="Seed of the patient split.")] = 0,
) -> None:
    """Build the label table of one of the paper's tasks, split by patient as in the paper."""
    starting("reading the sources")
    from foci.bags import Cohort
    from foci.bags.tasks import build

    built = build(task, sources, seed=seed)
    table = Cohort(tuple(built.slides))
    table.to_csv(out)
    for note in built.notes:
        typer.echo(f"note: {note}")
    for split, counts in table.counts().items():
        typer.echo(f"{split}: {sum(counts.values())} slides ({tally(counts)})")
    typer.echo(f"wrote {out}")
