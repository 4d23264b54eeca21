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


@dataclass(frozen=True)
class Skipped:
    """A slide that was left out, and the reason in one line."""

    slide_id: str
    reason: str
