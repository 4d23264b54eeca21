"""Answers that the user's own code printed for a few slides, read from a table."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from foci.bags import Cohort
from foci.bags.bag import Bag
from foci.bags.cohort.matching import short
from foci.bags.tables import Table, read_table
from foci.errors import CohortError

Kind = Literal["probabilities", "logits"]

_NUMBERED = re.compile(r"(p|prob|logit)s?_?(\d+)", re.IGNORECASE)
_SUM = 0.02


@dataclass(frozen=True)
class Expected:
    """Known answers of a classifier.

    Attributes:
        name: What people call them: the name of the file.
        kind: Whether they are probabilities or logits.
        answers: Per slide, its id and one number per class.
        decimals: Most decimals of a number; fewer than the classifier has.
    """

    name: str
    kind: Kind
    answers: tuple[tuple[str, tuple[float, ...]], ...]
    decimals: int = 17

    @property
    def rounding(self) -> float:
        """Largest error that printing so few decimals can make."""
        return 0.5 * 10.0**-self.decimals


def read_expected(path: str | Path, classes: Sequence[str], n_classes: int) -> Expected:
    """Read a table of ``slide_id`` and one column per class.

    Args:
        path: The table. Its columns are the names of the classes, or ``p0``, ``p1``, ... (also
            ``p_0``, ``prob_0``), or ``logit0``, ``logit1``, ...; ``p1`` alone is enough for two
            classes. Other columns are left alone.
        classes: Class names in the order of the classifier's outputs; may be empty.
        n_classes: Number of classes.
    """
    table = read_table(path)
    table.require("slide_id")
    columns = _columns(table, classes, n_classes)
    rows = [[_number(table, i, row[c], c) for c in columns] for i, row in enumerate(table.rows)]
    if not rows:
        raise CohortError(path, "holds no slides", "give the answers for at least one slide")
    ids = [row["slide_id"] for row in table.rows]
    if twice := next((one for one in ids if ids.count(one) > 1), None):
        raise CohortError(path, f"names the slide {twice} twice", "keep one of its rows")
    if len(columns) < n_classes:
        rows = [[1.0 - p, p] for (p,) in rows]
    kind = _kind(rows, columns)
    if kind == "logits" and not any("logit" in c.lower() for c in columns) and _says_p(columns):
        fix = "give softmax outputs, or name the columns logit0, logit1, ..."
        raise CohortError(path, "holds numbers that are no probabilities", fix)
    decimals = max(_decimals(row[c]) for row in table.rows for c in columns)
    answers = tuple((one, tuple(row)) for one, row in zip(ids, rows, strict=True))
    return Expected(Path(path).name, kind, answers, decimals)


def find_bags(expected: Expected, cohort: Cohort) -> list[Bag]:
    """The whole bag of every slide with an answer; no tile is left out, as in the user's code."""
    known = {short(slide.slide_id): slide for slide in cohort}
    known |= {slide.slide_id: slide for slide in cohort}
    found = {one: known.get(one, known.get(short(one))) for one, _ in expected.answers}
    missing = [one for one, slide in found.items() if slide is None]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise CohortError(
            expected.name,
            f"names {missing[0]}{more}, which the cohort does not have",
            "give slides of the cohort",
        )
    store = cohort.store.with_cap(None)
    return [store.bag(slide) for slide in found.values() if slide is not None]


def _columns(table: Table, classes: Sequence[str], n_classes: int) -> list[str]:
    numbered = {}
    for column in table.columns:
        if found := _NUMBERED.fullmatch(column):
            numbered[int(found[2])] = column
    if set(numbered) == set(range(n_classes)):
        return [numbered[c] for c in range(n_classes)]
    if n_classes == 2 and set(numbered) == {1}:
        return [numbered[1]]
    if classes and set(classes) <= set(table.columns):
        return list(classes)
    named = f"{', '.join(classes)} or " if classes else ""
    fix = f"name them {named}{', '.join(f'p{c}' for c in range(n_classes))}"
    raise CohortError(table.path, f"has no column for each of the {n_classes} classes", fix)


def _number(table: Table, index: int, text: str, column: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise CohortError(table.line(index), f"{column} is {text!r}", "give a number")
    return value


def _kind(rows: Sequence[Sequence[float]], columns: Sequence[str]) -> Kind:
    if any("logit" in column.lower() for column in columns):
        return "logits"
    likely = all(min(row) >= 0 and max(row) <= 1 and abs(sum(row) - 1) <= _SUM for row in rows)
    return "probabilities" if likely else "logits"


def _says_p(columns: Sequence[str]) -> bool:
    return all(_NUMBERED.fullmatch(column) for column in columns)


def _decimals(text: str) -> int:
    """Digits behind the point; all of them for a number with an exponent.

    >>> _decimals("0.9731"), _decimals("1"), _decimals("9.7e-01")
    (4, 0, 17)
    """
    return 17 if "e" in text.lower() else len(text.strip().partition(".")[2])
