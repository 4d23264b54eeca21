"""Patients whose slides are in more than one split: found, refused, or warned of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from foci.bags.cohort.slide import Slide
from foci.bags.cohort.splits import split_order
from foci.errors import CohortError
from foci.words.plural import counted

WARNING = "patient overlap: "
"""How the note on these patients begins, wherever it is shown."""

PatientOverlap = Mapping[str, tuple[str, ...]]
"""Splits of every patient in more than one split, by patient."""


def line_of(note: str) -> str:
    """A note as it is printed: one on patient overlap is a warning."""
    return f"{'WARNING' if note.startswith(WARNING) else 'note'}: {note}"


def overlapping_patients(slides: Iterable[Slide]) -> PatientOverlap:
    """Patients in two or more splits, with these splits; in the order of the table."""
    splits: dict[str, set[str]] = defaultdict(set)
    for slide in slides:
        if slide.split is not None:
            splits[slide.case_id].add(slide.split)
    return {
        case: tuple(sorted(own, key=split_order)) for case, own in splits.items() if len(own) > 1
    }


def check_leakage(slides: Iterable[Slide]) -> None:
    """Refuse a cohort in which a patient is in two splits."""
    overlap = overlapping_patients(slides)
    if overlap:
        case, names = next(iter(overlap.items()))
        more = f" (and {len(overlap) - 1} more patients)" if len(overlap) > 1 else ""
        raise CohortError(
            f"patient {case}",
            f"is in {' and '.join(names)}{more}",
            "put all slides of a patient into one split, or split again by patient, or keep "
            "these patients: --allow-patient-overlap (foci doctor lists them)",
        )


def warning(overlap: PatientOverlap) -> str:
    """The note on these patients, in one sentence with what it means for the numbers."""
    known = ", ".join(
        f"{case} ({' and '.join(names)})" for case, names in list(overlap.items())[:3]
    )
    more = ", ..." if len(overlap) > 3 else ""
    verb = "is" if len(overlap) == 1 else "are"
    return (
        f"{WARNING}{counted(len(overlap), 'patient')} {verb} in two splits ({known}{more}), as "
        "--allow-patient-overlap allows: what is measured on their slides is too good, because the "
        "model has seen the same patients"
    )
