"""``foci demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[Path, typer.Argument(help="Folder to make.")] = Path("foci-demo"),
    slides: Annotated[int, typer.Option(min=12, help="Number of slides.")] = 240,
    classes: Annotated[int, typer.Option(min=2, max=3, help="Number of classes.")] = 2,
    seed: Annotated[int, typer.Option(help="Seed of the synthetic slides.")] = 0,
) -> None:
    """Make the embedded cohort of synthetic slides and check it: FOCI without any data of yours."""
    from foci.bags.checks import examine
    from foci.cli.doctor import show
    from foci.demo import make

    folder = make(out, seed=seed, slides=slides, classes=classes)
    features = folder / "features_demo"
    show(examine(features, folder / "cohort.csv"), features)
    typer.echo(f"\nSynthetic slides with planted rationales are in {folder}; see its README.md.")
