"""The interface of an importer: the columns it recognises, and how it reads slides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from foci.bags.cohort.slide import Slide
from foci.bags.tables import Table


@dataclass(frozen=True)
class Imported:
    """Slides of a label table, and notes on what was assumed."""

    slides: tuple[Slide, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ImportOptions:
    """Options for what a table alone does not tell.

    Attributes:
        slide_table: STAMP's second table.
        label_column: The column that holds the label.
        fold: Which of several splits.
    """

    slide_table: Path | None = None
    label_column: str | None = None
    fold: int | None = None


@dataclass(frozen=True)
class Importer:
    """One format of label table.

    Attributes:
        description: Whose format, and its columns, in one line for people.
        matches: Whether a header is of this format.
        read: The slides of such a table.
        options: Names of the :class:`ImportOptions` it understands.
    """

    description: str
    matches: Callable[[tuple[str, ...]], bool]
    read: Callable[[Table, ImportOptions], Imported]
    options: tuple[str, ...] = ()
