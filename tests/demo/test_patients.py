"""Patients, splits, sites and hard slides."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foci.demo.cohort import plan_cohort
from foci.errors import FociError


@given(st.sampled_from([2, 3]), st.integers(12, 90), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_any_size_gives_disjoint_patients_and_every_class_in_every_split(
    classes: int, slides: int, seed: int
) -> None:
    plans = plan_cohort(np.random.default_rng(seed), slides, classes)
    names = [p.slide_id for p in plans]
    assert len(names) == len(set(names)) == slides
    assert names == sorted(names)
    facts = {(p.case_id, p.label, p.split, p.site) for p in plans}
    assert len(facts) == len({p.case_id for p in plans})
    assert {(p.label, p.split) for p in plans} == {
        (label, split) for label in range(classes) for split in ("train", "val", "test")
    }


def test_shares_of_the_default_cohort() -> None:
    plans = plan_cohort(np.random.default_rng(0), 240, 2)
    per_patient = Counter(Counter(p.case_id for p in plans).values())
    assert per_patient == {1: 160, 2: 40}
    of_patients = Counter(split for _, split in {(p.case_id, p.split) for p in plans})
    assert of_patients == {"train": 120, "val": 30, "test": 50}
    sites = Counter((p.label, p.site) for _, p in {p.case_id: p for p in plans}.items())
    assert set(sites.values()) == {50}
    for label in (0, 1):
        assert sum(p.hard for p in plans if p.label == label) / 120 == pytest.approx(0.15, abs=0.02)
    assert sum(p.magnification == 40 for p in plans) / 240 == pytest.approx(0.1, abs=0.02)
    assert {p.magnification for p in plans} == {20, 40}


def test_names_do_not_give_the_class_away() -> None:
    plans = plan_cohort(np.random.default_rng(0), 240, 2)
    labels = np.array([p.label for p in plans])
    assert abs(np.corrcoef(labels, np.arange(240))[0, 1]) < 0.2


@pytest.mark.parametrize(
    ("slides", "classes", "says"),
    [
        (7, 2, "slides=7: is too few for 2 classes in three splits; choose at least 8"),
        (11, 3, "slides=11: is too few for 3 classes in three splits; choose at least 12"),
        (99, 1, "classes=1: is not possible in the demo; choose 2 or 3"),
    ],
)
def test_impossible_cohorts_are_refused(slides: int, classes: int, says: str) -> None:
    with pytest.raises(FociError) as refusal:
        plan_cohort(np.random.default_rng(0), slides, classes)
    assert str(refusal.value) == says
