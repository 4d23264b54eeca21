"""Checks of the label table: matching, patients, splits, classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from foci.bags.checks.check import Check
from foci.bags.cohort.patient_overlap import overlapping_patients
from foci.bags.cohort.slide import Skipped, Slide
from foci.words.plural import counted, some, tally

_FEW = 10
_NO_SPLIT = "no split"
"""Slides outside all splits, whose classes do not matter."""


def check_table(slides: Sequence[Slide], *, allow_patient_overlap: bool = False) -> list[Check]:
    """Checks of patients, splits and classes."""
    return [_leakage(slides, allow_patient_overlap), *_classes(slides)]


def _leakage(slides: Sequence[Slide], allowed: bool) -> Check:
    """Every patient in two splits, with these splits."""
    overlap = [
        f"{case} ({' and '.join(names)})" for case, names in overlapping_patients(slides).items()
    ]
    if not overlap:
        cases = len({s.case_id for s in slides})
        return Check("leakage", "PASS", f"{cases} patients, none in two splits")
    verb = "is" if len(overlap) == 1 else "are"
    found = f"{counted(len(overlap), 'patient')} {verb} in two splits: {', '.join(overlap)}"
    if allowed:
        fix = "allowed by --allow-patient-overlap; what is measured on their slides is too good"
        return Check("leakage", "WARN", found, fix, tuple(overlap))
    fix = (
        "put all slides of a patient into one split, or split again by patient, or go on with "
        "them: --allow-patient-overlap"
    )
    return Check("leakage", "FAIL", found, fix, tuple(overlap))


def check_matching(rows: int, missing: Sequence[Skipped], unused: Sequence[str]) -> Check:
    """Check that every row has a feature file, and every file a row."""
    parts = []
    if missing:
        names = some([slide.slide_id for slide in missing])
        parts.append(f"no features for {names}; first: {missing[0].reason}")
    if unused:
        parts.append(f"not in the table: {some(unused)}")
    if len(missing) == rows:
        fix = "check slide names and, if the table has it, the column feature_path"
        return Check("matching", "FAIL", "; ".join(parts), fix)
    if parts:
        fix = "extract the missing slides or mend feature_path; files outside the table are ignored"
        return Check("matching", "WARN", "; ".join(parts), fix)
    return Check("matching", "PASS", f"every one of {rows} slides has a feature file")


def _classes(slides: Sequence[Slide]) -> list[Check]:
    unlabelled = [s.slide_id for s in slides if s.label is None]
    table: dict[str, Counter[str]] = {}
    rest = _NO_SPLIT if any(slide.split for slide in slides) else "all slides"
    for slide in slides:
        if slide.label is not None:
            table.setdefault(slide.split or rest, Counter())[slide.label] += 1
    classes = sorted({label for counts in table.values() for label in counts})
    detail = "; ".join(f"{split}: {tally(counts)}" for split, counts in table.items())
    used = {split: counts for split, counts in table.items() if split != _NO_SPLIT}
    single = [split for split, counts in used.items() if len(counts) < max(2, len(classes))]
    few = [split for split, counts in used.items() if min(counts.values()) < _FEW]
    checks = []
    if single:
        fix = "every split needs every class; split again, stratified by label"
        checks.append(
            Check("classes", "FAIL", f"a class is missing in {', '.join(single)} ({detail})", fix)
        )
    elif few:
        fix = f"fewer than {_FEW} slides of a class give wide intervals"
        checks.append(Check("classes", "WARN", detail, fix))
    elif table:
        checks.append(Check("classes", "PASS", detail))
    if unlabelled:
        fix = "add labels, or audit the predicted class"
        checks.append(Check("unlabelled", "WARN", some(unlabelled), fix))
    return checks
