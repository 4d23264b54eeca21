"""Plan the slides of the demo: patients, classes, sites and splits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foci.errors import FociError

SITES = ("site-1", "site-2")
CLASSES = ("A-type", "B-type", "C-type")

_TWO_SLIDES = 0.2
_VAL, _TEST = 0.15, 0.25
_HARD = 0.15
_SCANNED_AT_40 = 0.1


@dataclass(frozen=True)
class PlannedSlide:
    """What is decided about a slide before its tiles are drawn.

    Attributes:
        slide_id: Name of the slide.
        case_id: The patient.
        label: Index into :data:`CLASSES`.
        split: ``"train"``, ``"val"`` or ``"test"``.
        site: Index into :data:`SITES`.
        hard: Whether the witnesses carry less.
        magnification: Of level 0, 20 or 40.
    """

    slide_id: str
    case_id: str
    label: int
    split: str
    site: int
    hard: bool
    magnification: int


@dataclass(frozen=True)
class _Patient:
    case_id: str
    label: int
    split: str
    site: int
    slides: int


def plan_cohort(rng: np.random.Generator, slides: int, classes: int) -> list[PlannedSlide]:
    """Plan exactly ``slides`` slides, ordered by name.

    One patient in five has two slides. Classes and sites alternate over the patients; within a
    class 15 % of the patients (at least one) validate, 25 % (at least one) test, the rest train.
    15 % of the slides are hard, 10 % were scanned at 40x.
    """
    if not 2 <= classes <= len(CLASSES):
        raise FociError(f"classes={classes}", "is not possible in the demo", "choose 2 or 3")
    if slides < 4 * classes:
        raise FociError(
            f"slides={slides}",
            f"is too few for {classes} classes in three splits",
            f"choose at least {4 * classes}",
        )
    planned = [
        (f"{patient.case_id}-{number}", patient)
        for patient in _patients(rng, slides, classes)
        for number in range(1, patient.slides + 1)
    ]
    strata = [(patient.label, patient.split) for _, patient in planned]
    hard = _mark(rng, strata, _HARD)
    at_40 = _mark(rng, strata, _SCANNED_AT_40)
    return [
        PlannedSlide(
            slide_id=slide_id,
            case_id=patient.case_id,
            label=patient.label,
            split=patient.split,
            site=patient.site,
            hard=bool(hard[index]),
            magnification=40 if at_40[index] else 20,
        )
        for index, (slide_id, patient) in enumerate(planned)
    ]


def _patients(rng: np.random.Generator, slides: int, classes: int) -> list[_Patient]:
    # p patients with 0.2 p second slides are 1.2 p slides in all
    n_two = round(slides * _TWO_SLIDES / (1 + _TWO_SLIDES))
    n = slides - n_two
    two = rng.permutation(n) < n_two
    name = rng.permutation(n) + 1
    patients = []
    for index in range(n):
        label, place = index % classes, index // classes
        in_class = len(range(label, n, classes))
        patients.append(
            _Patient(
                case_id=f"demo-{name[index]:04d}",
                label=label,
                split=_split(place, in_class),
                site=place % len(SITES),
                slides=2 if two[index] else 1,
            )
        )
    return sorted(patients, key=lambda patient: patient.case_id)


def _split(place: int, n: int) -> str:
    n_val, n_test = max(1, round(_VAL * n)), max(1, round(_TEST * n))
    if place < n_val:
        return "val"
    return "test" if place < n_val + n_test else "train"


def _mark(
    rng: np.random.Generator, strata: list[tuple[int, str]], share: float
) -> NDArray[np.bool_]:
    """Mark ``share`` of the slides of every stratum, at random."""
    marked = np.zeros(len(strata), dtype=np.bool_)
    for stratum in sorted(set(strata)):
        members = [index for index, own in enumerate(strata) if own == stratum]
        marked[rng.permutation(members)[: round(share * len(members))]] = True
    return marked
