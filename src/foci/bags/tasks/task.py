"""The definition of a task: classes, sources, and the paper's split sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from foci.bags.cohort.slide import Slide
from foci.errors import CohortError


@dataclass(frozen=True)
class BuiltCohort:
    """Slides of a task, and notes on what was left out or assumed."""

    slides: tuple[Slide, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source:
    """A file or folder of slides, and their class where the user names it."""

    path: Path
    label: str | None = None


@dataclass(frozen=True)
class Task:
    """One classification task.

    Attributes:
        description: One line for people.
        classes: Class names, in model order.
        counts: Slides in train, val and test of the paper.
        stratify_by: What the split keeps in proportion.
        read: Slides of one source.
    """

    description: str
    classes: tuple[str, ...]
    counts: tuple[int, int, int]
    stratify_by: tuple[str, ...]
    read: Callable[[Source], BuiltCohort]


def parse_source(text: str, classes: Sequence[str]) -> Source:
    """Read ``PATH`` or ``LABEL=PATH``; a path that holds an ``=`` itself is still a path.

    Raises:
        CohortError: If the path does not exist, or the label is no class of the task.
    """
    label, mark, rest = text.partition("=")
    named = {name.lower(): name for name in classes}
    if mark and label.lower() in named:
        source = Source(_path(rest), named[label.lower()])
    else:
        source = Source(_path(text))
    if source.path.exists():
        return source
    if mark and source.label is None and _path(rest).exists():
        what = f"{label!r} is not a class of this task"
        raise CohortError(text, what, f"write one of {', '.join(f'{c}=PATH' for c in classes)}")
    raise CohortError(source.path, "does not exist", "give a file or folder")


def _path(text: str) -> Path:
    """A path with ``~`` filled in; left as it is where nobody knows the home folder."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)
