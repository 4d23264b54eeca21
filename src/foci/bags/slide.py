"""Slide: one row of a cohort."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Slide:
    """One slide of a cohort; all ids are strings, however numeric they look.

    Attributes:
        slide_id: Name of the slide, unique in its cohort.
        case_id: The patient; all slides of a patient are in one split.
        label: Class name, or None where it is unknown.
        split: ``"train"``, ``"val"`` or ``"test"``, or None before splitting.
        site: Hospital or scanner, for stratification.
        slide_path: The whole-slide image.
        feature_path: The feature file.
    """

    slide_id: str
    case_id: str
    label: str | None = None
    split: str | None = None
    site: str | None = None
    slide_path: Path | None = None
    feature_path: Path | None = None


MANY_SKIPPED = 0.1
"""Share of skipped slides above which a result no longer stands for its cohort."""


@dataclass(frozen=True)
class Skipped:
    """A slide that was left out, and the reason in one line."""

    slide_id: str
    reason: str


def many_skipped(skipped: int, total: int, which: str = "slides") -> str | None:
    """A sentence if more than 10 % of the slides were skipped, else None.

    This is the one place that decides it; commands say the sentence first and end with a code of
    their own.

    >>> many_skipped(1, 10) is None
    True
    >>> many_skipped(2, 10)
    '2 of 10 slides are skipped (20 %): the result may not stand for the cohort'
    """
    if skipped <= MANY_SKIPPED * total:
        return None
    share = f"{skipped} of {total} {which} are skipped ({skipped / total:.0%})".replace("%)", " %)")
    return f"{share}: the result may not stand for the cohort"
