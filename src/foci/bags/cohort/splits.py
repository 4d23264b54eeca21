"""Train, validation and test splits by patient."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from foci.bags.cohort.assignment import Group, fill, imbalance, meet
from foci.bags.cohort.quotas import largest_remainder, stratum_quotas
from foci.bags.cohort.slide import Slide
from foci.errors import CohortError

SPLITS = ("train", "val", "test")
_STRATIFIERS = ("label", "site")
_BETWEEN = " \u00d7 "


@dataclass(frozen=True)
class Partition:
    """Slides with their splits, in the given order, and notes on what could not be met."""

    slides: list[Slide]
    notes: tuple[str, ...] = ()


def split_by_patient(
    slides: Sequence[Slide],
    *,
    fractions: Sequence[float] | None = None,
    counts: Sequence[int] | None = None,
    seed: int = 0,
    stratify_by: str | Sequence[str] = "label",
) -> Partition:
    """Stratified split into train, val and test that keeps each patient in one split.

    Every stratum is divided by largest remainder. Where a patient goes depends only on the seed and
    the patients' names, not on the order of the rows, the platform or a library's version.

    Args:
        slides: The cohort; splits it already has are replaced.
        fractions: Shares of the slides; the strata are kept, the sizes are near.
        counts: Exact numbers of slides. They are met wherever whole patients allow, if need be at
            the strata's expense, which a note then says.
        seed: Another seed, another split.
        stratify_by: ``"label"``, ``"site"``, or both; a patient counts for what most of the
            slides say.

    Raises:
        CohortError: If neither or both of ``fractions`` and ``counts`` are given, or they do not
            add up.
    """
    sizes = _sizes(len(slides), fractions, counts)
    fields = (stratify_by,) if isinstance(stratify_by, str) else tuple(stratify_by)
    if unknown := [name for name in fields if name not in _STRATIFIERS]:
        what = f"cannot be {unknown[0]!r}"
        raise CohortError("stratify_by", what, f"choose from {', '.join(_STRATIFIERS)}")

    patients: dict[Group, list[str]] = defaultdict(list)
    for case, own in _by_patient(slides).items():
        patients[_stratum(own, fields), len(own)].append(case)
    groups = {group: len(patients[group]) for group in sorted(patients)}
    totals: Counter[str] = Counter()
    for (stratum, size), number in groups.items():
        totals[stratum] += size * number
    quotas = stratum_quotas(totals, sizes)
    placement = fill(groups, quotas)
    if counts is not None:
        placement = meet(placement, quotas, sizes)

    split_of: dict[str, str] = {}
    for group, row in placement.items():
        drawn = sorted(patients[group], key=lambda case: _draw(seed, case))
        names = [name for name, n in zip(SPLITS, row, strict=True) for _ in range(n)]
        split_of.update(zip(drawn, names, strict=True))
    placed = [replace(slide, split=split_of[slide.case_id]) for slide in slides]

    found = Counter(slide.split for slide in placed)
    got = [found[name] for name in SPLITS]
    notes = []
    if counts is not None and got != sizes:
        wanted, used = ("/".join(map(str, numbers)) for numbers in (sizes, got))
        notes.append(f"whole patients cannot make splits of {wanted} slides; they have {used}")
    off, largest = imbalance(placement, quotas), max(size for _, size in groups)
    if off > largest:
        by = _BETWEEN.join(fields)
        notes.append(f"to meet the split sizes, the share of a {by} is off by up to {off} slides")
    notes += [
        f"{name} is empty: there are too few patients"
        for name, size, n in zip(SPLITS, sizes, got, strict=True)
        if size and not n
    ]
    return Partition(placed, tuple(notes))


def check_labels(slides: Iterable[Slide], classes: Sequence[str]) -> None:
    """Refuse a label outside the classes, and a split with a single class."""
    labels: dict[str, set[str]] = defaultdict(set)
    for slide in slides:
        if slide.label is None:
            continue
        if slide.label not in classes:
            what = f"has the label {slide.label!r}, not one of {', '.join(classes)}"
            fix = (
                f"correct the label or the classes, or leave it out: --exclude-class {slide.label}"
            )
            raise CohortError(f"slide {slide.slide_id}", what, fix)
        if slide.split is not None:
            labels[slide.split].add(slide.label)
    for split in sorted(labels, key=split_order):
        if len(labels[split]) == 1:
            what = f"has slides of {min(labels[split])} only"
            raise CohortError(f"split {split}", what, "split again, stratified by label")


def _sizes(n: int, fractions: Sequence[float] | None, counts: Sequence[int] | None) -> list[int]:
    if n == 0:
        raise CohortError("cohort", "has no slides", "check the label table")
    if counts is not None and fractions is None:
        _check_three("counts", counts)
        if sum(counts) != n:
            what = f"add up to {sum(counts)}, but there are {n} slides"
            raise CohortError("counts", what, "give counts that add up, or fractions")
        return list(counts)
    if fractions is not None and counts is None:
        _check_three("fractions", fractions)
        if abs(sum(fractions) - 1) > 1e-6:
            raise CohortError("fractions", f"add up to {sum(fractions):g}, not 1", "correct them")
        return largest_remainder(n, [round(share * 10**9) for share in fractions])
    raise CohortError("split", "needs either fractions or counts", "give one of them")


def _check_three(option: str, numbers: Sequence[float]) -> None:
    if len(numbers) != len(SPLITS) or not all(number >= 0 for number in numbers):
        fix = "give three numbers, for train, val and test; 0 leaves a split out"
        raise CohortError(option, f"cannot be {', '.join(map(str, numbers))}", fix)


def _by_patient(slides: Iterable[Slide]) -> dict[str, list[Slide]]:
    patients: dict[str, list[Slide]] = defaultdict(list)
    for slide in slides:
        patients[slide.case_id].append(slide)
    return patients


def _stratum(slides: Sequence[Slide], fields: Sequence[str]) -> str:
    votes = Counter(
        _BETWEEN.join(getattr(slide, name) or "" for name in fields) for slide in slides
    )
    return min(votes, key=lambda value: (-votes[value], value))


def _draw(seed: int, case: str) -> bytes:
    return hashlib.sha256(f"{seed}\n{case}".encode()).digest()


def split_order(split: str) -> tuple[int, str]:
    """Sort key: train, val and test first, in this order."""
    return (SPLITS.index(split) if split in SPLITS else len(SPLITS), split)
