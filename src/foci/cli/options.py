"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from foci.errors import FociError

Features = Annotated[
    Path, typer.Argument(help="Folder of feature files (CLAM, TRIDENT, STAMP, ...).")
]
Labels = Annotated[
    Path | None,
    typer.Option(help="Label table: FOCI, CLAM, Patho-Bench, STAMP or torchmil."),
]
Splits = Annotated[
    Path | None,
    typer.Option(help="CLAM's splits_k.csv, or a table of slide_id and split."),
]
SlideTable = Annotated[
    Path | None,
    typer.Option(help="STAMP's slide table."),
]
LabelColumn = Annotated[
    str | None,
    typer.Option(help="Column that holds the label, where the format leaves it open."),
]
Fold = Annotated[
    int | None,
    typer.Option(min=0, help="Fold of a Patho-Bench table."),
]
Layout = Annotated[str, typer.Option(help="Force a feature layout instead of detecting it.")]
Mpp = Annotated[
    float | None,
    typer.Option(min=0.01, help="Micrometres per level-0 pixel (STAMP, slideflow)."),
]
FeatureFolder = Annotated[
    Path, typer.Option("--features", help="Folder of feature files (CLAM, TRIDENT, STAMP, ...).")
]
LabelTable = Annotated[
    Path, typer.Option("--labels", help="Label table: FOCI, CLAM, Patho-Bench, STAMP or torchmil.")
]
Classes = Annotated[
    str | None,
    typer.Option(help="Class names in the model's order, with commas between them."),
]
SplitSeed = Annotated[
    int | None,
    typer.Option(help="Of the patient split, if the table has none; default is the model's."),
]
NCap = Annotated[int, typer.Option(min=1, help="Most candidate tiles per bag, by feature norm.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, ...")]


def settings(pairs: list[str], option: str) -> dict[str, Any]:
    """Read ``key=value`` pairs; a value is YAML: ``true``, ``3`` and ``null`` mean what they say.

    >>> settings(["d=128", "head_hidden=null", "activation=gelu"], "--set")
    {'d': 128, 'head_hidden': None, 'activation': 'gelu'}
    """
    import yaml

    result = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise FociError(f"{option} {pair}", "is not of the form key=value", "write key=value")
        try:
            result[key] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            why = f"has a value that cannot be read ({str(error).splitlines()[0]})"
            raise FociError(f"{option} {pair}", why, "close brackets and quotes") from error
    return result


def names(text: str | None) -> tuple[str, ...] | None:
    """Names with commas between them; None if the option was not given.

    >>> names("B-type, A-type")
    ('B-type', 'A-type')
    """
    return None if text is None else tuple(name.strip() for name in text.split(",") if name.strip())
