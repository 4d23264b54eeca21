"""Arguments and options that the commands of ``foci study`` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Study = Annotated[Path, typer.Argument(help="Folder with a study.yaml.")]
Threads = Annotated[
    int,
    typer.Option(
        min=1, help="Threads of every cell; the same number gives the same bytes everywhere."
    ),
]
