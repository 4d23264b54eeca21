"""Arguments and options that the commands of ``foci study`` share."""

from __future__ import annotations

import os
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


def limit_threads(number: int) -> None:
    """Let the libraries that are loaded from now on compute with so many threads.

    Torch is told by every cell; NumPy's linear algebra reads the environment once.
    """
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(number)
