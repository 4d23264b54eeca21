"""The paper's printed numbers, read from one data file: table, cohort, row, column, mean, std."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

FILE = Path(__file__).with_suffix(".csv")
COHORTS = ("nsclc", "brca", "panda")
FOCI = "+foci"
"""Ends the name of a row in which a selector ranks the tiles of a backbone."""


@dataclass(frozen=True)
class PublishedNumber:
    """One printed cell of the paper.

    Attributes:
        mean: As printed.
        std: As printed after the plus-minus sign; None where nothing is printed.
        seeds: How many seeds were averaged; None where it is not said.
        digits: Decimals printed.
    """

    mean: float
    std: float | None
    seeds: int | None
    digits: int


PublishedNumbers = Mapping[tuple[str, str, str, str], PublishedNumber]
"""By table, cohort, row and column, in the order of print.

* table: the paper's LaTeX label without ``tab:``; ``tests`` for those in its text;
* cohort: ``nsclc``, ``brca``, ``panda``, or ``mean`` and ``all`` over them;
* row: backbone (with ``+foci`` where a selector ranks), recipe, threshold or tile cap;
* column: quantity; Reach in percent where the paper prints percent.
"""


@lru_cache(maxsize=1)
def published() -> PublishedNumbers:
    """Read the paper's numbers.

    >>> published()["main", "nsclc", "transmil+foci", "msk_cond"].mean
    3.21
    """
    with FILE.open(newline="", encoding="utf-8") as file:
        return {
            (row["label"], row["cohort"], row["row"], row["column"]): PublishedNumber(
                mean=float(row["mean"]),
                std=float(row["std"]) if row["std"] else None,
                seeds=int(row["seeds"]) if row["seeds"] else None,
                digits=int(row["digits"]),
            )
            for row in csv.DictReader(file)
        }
