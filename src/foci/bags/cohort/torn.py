"""Patients whose slides are in more than one split: found, refused, or warned of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from foci.bags.cohort.slide import Slide
from foci.bags.cohort.splits import split_order
from foci.errors import CohortError
from foci.words.plural import counted

WARNING = "torn patients: "
"""How the note on torn patients begins, wherever it is shown."""

TornPatients = Mapping[str, tuple[str, ...]]
"""Splits of every torn patient, by patient."""


def line_of(note: str) -> str:
    """A note as it is printed: one on torn patients is a warning."""
    return f"{'WARNING' if note.startswith(WARNING) else 'note'}: {note}"


def torn_patients(slides: Iterable[Slide]) -> TornPatients:
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
    torn = torn_patients(slides)
    if torn:
        case, names = next(iter(torn.items()))
        more = f" (and {len(torn) - 1} more patients are torn apart)" if len(torn) > 1 else ""
        raise CohortError(
            f"patient {case}",
            f"is in {' and '.join(names)}{more}",
            "put all slides of a patient into one split, or split again by patient, or go on "
            "with the torn patients: --allow-torn-patients (foci doctor lists them)",
        )


def warning(torn: TornPatients) -> str:
    """The note on torn patients, in one sentence with what it means for the numbers."""
    known = ", ".join(f"{case} ({' and '.join(names)})" for case, names in list(torn.items())[:3])
    more = ", ..." if len(torn) > 3 else ""
    verb = "is" if len(torn) == 1 else "are"
    return (
        f"{WARNING}{counted(len(torn), 'patient')} {verb} in two splits ({known}{more}), as "
        "--allow-torn-patients allows: what is measured on their slides is too good, because the "
        "model has seen the same patients"
    )
