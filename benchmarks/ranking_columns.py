"""Columns of the ranking tables, from the rows that ``ranking_table.py`` stores."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata

NEVER = 10**6
Row = dict[str, Any]
Cells = dict[tuple[str, str], list[list[Row]]]
"""Rows of every seed, by classifier and ranking."""


def mean(rows: Iterable[Row], key: str) -> float:
    """Mean of a column over the rows that have it."""
    values = [row[key] for row in rows if row[key] is not None]
    return statistics.mean(values) if values else math.nan


def median_decisive(rows: Sequence[Row]) -> float:
    """Median with missing as infinite."""
    return float(np.median([math.inf if r["decisive"] is None else r["decisive"] for r in rows]))


def correlation(rows: Sequence[Row]) -> float:
    """Spearman correlation of decisive K and true number, missing as larger than any."""
    if len(rows) < 3:
        return math.nan
    counts = rankdata([NEVER if r["decisive"] is None else r["decisive"] for r in rows])
    true = rankdata([r["n_true"] for r in rows])
    if counts.std() == 0 or true.std() == 0:
        return math.nan
    return float(np.corrcoef(counts, true)[0, 1])


Column = Callable[[Sequence[Row]], float]
OVERALL: dict[str, Column] = {
    "decided": lambda rows: len({r["slide"] for r in rows}),
    "MSK restricted": lambda rows: mean(rows, "restricted"),
    "median DK": median_decisive,
    "has DK": lambda rows: statistics.mean(r["decisive"] is not None for r in rows),
    "Faithfulness": lambda rows: mean(rows, "faithfulness"),
    "average precision": lambda rows: mean(rows, "average_precision"),
    "ties in 32": lambda rows: mean(rows, "ties"),
}
AGAINST_TRUTH: dict[str, Column] = {
    "slides": lambda rows: len({r["slide"] for r in rows}),
    "median true": lambda rows: float(np.median([r["n_true"] for r in rows])),
    "median DK": median_decisive,
    "has DK": OVERALL["has DK"],
    "correlation": correlation,
    "precision": lambda rows: mean(rows, "precision"),
    "recall": lambda rows: mean(rows, "recall"),
    "average precision": OVERALL["average precision"],
}


def show_by_class(cells: Cells, rankings: Sequence[str], classes: Sequence[str]) -> None:
    """A Markdown table by predicted class: decided slides of all seeds, share with DK, median."""
    print("\n| classifier | ranking | " + " | ".join(classes) + " |")
    print("|---" * (len(classes) + 2) + "|")
    for (model, name), seeds in cells.items():
        if name in rankings:
            pooled = [row for rows in seeds for row in rows]
            line = " | ".join(_of_class(pooled, index) for index in range(len(classes)))
            print(f"| {model} | {name} | {line} |", flush=True)


def _of_class(rows: Sequence[Row], index: int) -> str:
    own = [row for row in rows if row["target"] == index]
    if not own:
        return "0"
    share = OVERALL["has DK"](own)
    return f"{len(own)}: {share:.2f}, {written(median_decisive(own), 1)}"


PLACES = {"decided": 0, "slides": 0, "MSK restricted": 1, "median true": 1, "median DK": 1}
"""Decimal places; 2 for shares and everything else."""


def show(cells: Cells, columns: dict[str, Column], keep: Callable[[Row], bool]) -> None:
    """A Markdown table, mean over the seeds; a seed without slides is left out."""
    print("\n| classifier | ranking | seeds | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 3) + "|")
    for (model, name), seeds in cells.items():
        kept = [[row for row in rows if keep(row)] for rows in seeds]
        kept = [rows for rows in kept if rows]
        if kept:
            values = {c: statistics.mean(f(rows) for rows in kept) for c, f in columns.items()}
            line = " | ".join(written(v, PLACES.get(c, 2)) for c, v in values.items())
            print(f"| {model} | {name} | {len(kept)} | {line} |", flush=True)


def written(value: float, places: int) -> str:
    """A number of the table; an infinite median as ``none``."""
    return "-" if math.isnan(value) else "none" if math.isinf(value) else f"{value:.{places}f}"
