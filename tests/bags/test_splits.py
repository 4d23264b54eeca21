"""Splits by patient: whole patients, shares of every stratum, exact sizes."""

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import product
from math import gcd

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foci.bags.bag import Slide
from foci.bags.cohort import check_leakage
from foci.bags.splits import (
    Group,
    check_labels,
    fill,
    imbalance,
    largest_remainder,
    least_miss,
    meet,
    miss,
    split_by_patient,
    stratum_quotas,
)
from foci.errors import CohortError

patients = st.lists(
    st.tuples(st.sampled_from(["LUAD", "LUSC"]), st.integers(1, 4), st.sampled_from(["x", "y"])),
    min_size=1,
    max_size=40,
)


def cohort(rows: Sequence[tuple[str, int, str]]) -> list[Slide]:
    return [
        Slide(f"s{case}-{k}", f"p{case}", label, site=site)
        for case, (label, n, site) in enumerate(rows)
        for k in range(n)
    ]


def lung(luad: int, lusc: int) -> list[Slide]:
    return cohort([("LUAD", 1, "x")] * luad + [("LUSC", 1, "x")] * lusc)


def sizes(slides: Sequence[Slide]) -> tuple[int, ...]:
    found = Counter(slide.split for slide in slides)
    return found["train"], found["val"], found["test"]


@settings(deadline=None, max_examples=60)
@given(patients, st.integers(0, 5))
def test_patients_stay_whole_and_rows_in_order(rows: list[tuple[str, int, str]], seed: int) -> None:
    slides = cohort(rows)
    result = split_by_patient(slides, fractions=(0.7, 0.1, 0.2), seed=seed)
    check_leakage(result.slides)
    assert [s.slide_id for s in result.slides] == [s.slide_id for s in slides]
    assert {s.split for s in result.slides} <= {"train", "val", "test"}


@settings(deadline=None, max_examples=60)
@given(patients, st.integers(0, 5), st.randoms(use_true_random=False))
def test_row_order_does_not_matter(
    rows: list[tuple[str, int, str]], seed: int, shuffler: random.Random
) -> None:
    slides = cohort(rows)
    counts = (len(slides) - len(slides) // 3, 0, len(slides) // 3)
    shuffled = slides.copy()
    shuffler.shuffle(shuffled)
    first = split_by_patient(slides, counts=counts, seed=seed)
    second = split_by_patient(shuffled, counts=counts, seed=seed)
    assert set(first.slides) == set(second.slides)
    assert first.notes == second.notes


@settings(deadline=None, max_examples=60)
@given(patients)
def test_class_shares_are_within_one_patient(rows: list[tuple[str, int, str]]) -> None:
    slides = cohort(rows)
    fractions = (0.5, 0.2, 0.3)
    result = split_by_patient(slides, fractions=fractions, stratify_by=("label", "site"))
    found = Counter((s.label, s.site, s.split) for s in result.slides)
    whole = Counter((s.label, s.site) for s in sorted(slides, key=lambda s: (s.label, s.site)))
    quotas = stratum_quotas(whole, largest_remainder(len(slides), (5, 2, 3)))
    for (label, site), quota in quotas.items():
        largest = max(n for one, n, other in rows if (one, other) == (label, site))
        for split, share in zip(("train", "val", "test"), quota, strict=True):
            assert abs(found[label, site, split] - share) < largest


@settings(deadline=None, max_examples=60)
@given(patients.filter(lambda rows: len(rows) <= 6), st.data())
def test_counts_are_met_as_nearly_as_whole_patients_allow(
    rows: list[tuple[str, int, str]], data: st.DataObject
) -> None:
    slides = cohort(rows)
    counts = draw_counts(data, len(slides))
    result = split_by_patient(slides, counts=counts)
    missed = sum(abs(a - b) for a, b in zip(sizes(result.slides), counts, strict=True))
    assert missed == nearest_by_trying_everything([n for _, n, _ in rows], counts)
    assert any("cannot make splits" in note for note in result.notes) == (missed > 0)


def nearest_by_trying_everything(patients: Sequence[int], counts: Sequence[int]) -> int:
    """Fewest slides too many or too few; a split of no slides stays empty."""
    best = sum(patients) * 2
    for choice in product(range(3), repeat=len(patients)):
        got = [0, 0, 0]
        for split, size in zip(choice, patients, strict=True):
            got[split] += size
        if all(n == 0 for n, wanted in zip(got, counts, strict=True) if wanted == 0):
            best = min(best, sum(abs(a - b) for a, b in zip(got, counts, strict=True)))
    return best


def test_the_seed_decides_who() -> None:
    slides = lung(40, 40)
    runs = [split_by_patient(slides, fractions=(0.5, 0, 0.5), seed=s).slides for s in (0, 0, 1)]
    assert runs[0] == runs[1] != runs[2]
    assert sizes(runs[0]) == sizes(runs[2]) == (40, 0, 40)


def test_a_split_is_the_same_on_every_machine() -> None:
    result = split_by_patient(lung(4, 4), counts=(4, 2, 2), seed=0)
    # By the SHA-256 of "0\n<patient>": p0 p2 p3 p1 of the one class, p6 p7 p4 p5 of the other.
    want = ["train", "test", "train", "val", "val", "test", "train", "train"]
    assert [s.split for s in result.slides] == want


def test_a_patient_with_two_labels_counts_for_the_commoner() -> None:
    slides = [Slide("a1", "p", "x"), Slide("a2", "p", "y"), Slide("a3", "p", "y")]
    slides += [Slide(f"s{k}", f"s{k}", label) for k, label in enumerate("xxxyyy")]
    result = split_by_patient(slides, counts=(3, 3, 3))
    check_leakage(result.slides)
    assert sizes(result.slides) == (3, 3, 3)


def test_impossible_counts_give_the_nearest_and_a_note() -> None:
    slides = cohort([("LUAD", 3, "x"), ("LUAD", 3, "x")])
    result = split_by_patient(slides, counts=(4, 0, 2))
    assert sizes(result.slides) == (3, 0, 3)
    assert result.notes == ("whole patients cannot make splits of 4/0/2 slides; they have 3/0/3",)


def test_counts_at_the_expense_of_classes_are_noted() -> None:
    slides = cohort([("LUAD", 7, "x")] * 10 + [("LUSC", 9, "x")] * 10)
    result = split_by_patient(slides, counts=(81, 0, 79))
    assert sizes(result.slides) == (81, 0, 79)
    (note,) = result.notes
    assert note.startswith("to meet the split sizes, the share of a label is off by up to ")


def test_too_few_patients_are_noted() -> None:
    result = split_by_patient(cohort([("LUAD", 5, "x")]), fractions=(0.6, 0.2, 0.2))
    assert result.notes == (
        "val is empty: there are too few patients",
        "test is empty: there are too few patients",
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "split: needs either fractions or counts; give one of them"),
        ({"fractions": (1, 0, 0), "counts": (4, 0, 0)}, "split: needs either fractions or counts"),
        ({"counts": (1, 1, 1)}, "counts: add up to 3, but there are 4 slides; give counts that"),
        ({"counts": (5, -1, 0)}, "counts: cannot be 5, -1, 0; give three numbers"),
        ({"fractions": (0.5, 0.5)}, "fractions: cannot be 0.5, 0.5; give three numbers, for train"),
        ({"fractions": (0.5, 0.4, 0.2)}, "fractions: add up to 1.1, not 1"),
        ({"fractions": (float("nan"), 0, 1)}, "fractions: cannot be nan"),
        ({"counts": (2, 1, 1), "stratify_by": "age"}, "stratify_by: cannot be 'age'; choose from"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(CohortError, match=message):
        split_by_patient(lung(2, 2), **options)  # type: ignore[arg-type]


def test_an_empty_cohort_is_refused() -> None:
    with pytest.raises(CohortError, match="cohort: has no slides"):
        split_by_patient([], fractions=(1, 0, 0))


def test_labels_must_be_classes_and_splits_hold_two() -> None:
    slides = [
        Slide("a", "a", "x", "train"),
        Slide("b", "b", "y", "train"),
        Slide("c", "c", "x", "test"),
        Slide("d", "d", None, "test"),
        Slide("e", "e", "x"),
    ]
    with pytest.raises(CohortError, match="slide b: has the label 'y', not one of x, z; correct"):
        check_labels(slides, ["x", "z"])
    with pytest.raises(CohortError, match="split test: has slides of x only; split again, strat"):
        check_labels(slides, ["x", "y"])
    check_labels([*slides, Slide("f", "f", "y", "test")], ["x", "y"])


def test_both_strata_are_kept() -> None:
    rows = [(label, 1, site) for label in ("a", "b") for site in ("x", "y") for _ in range(20)]
    result = split_by_patient(cohort(rows), counts=(56, 8, 16), stratify_by=("label", "site"))
    found: dict[str, Counter[tuple[str | None, str | None]]] = defaultdict(Counter)
    for slide in result.slides:
        found[str(slide.split)][slide.label, slide.site] += 1
    shares = {split: set(counts.values()) for split, counts in found.items()}
    assert shares == {"train": {14}, "val": {2}, "test": {4}}


# Whole patients into splits.


Groups = dict[Group, int]

large = st.dictionaries(
    st.tuples(st.sampled_from("ABC"), st.integers(1, 9)), st.integers(1, 30), min_size=1
)


def totals(groups: Groups) -> dict[str, int]:
    slides: dict[str, int] = {}
    for (stratum, size), number in sorted(groups.items()):
        slides[stratum] = slides.get(stratum, 0) + size * number
    return slides


def draw_counts(data: st.DataObject, total: int) -> tuple[int, int, int]:
    first = data.draw(st.integers(0, total))
    second = data.draw(st.integers(0, total - first))
    return first, second, total - first - second


@settings(deadline=None, max_examples=60)
@given(large, st.data())
def test_single_slides_fill_every_quota(groups: Groups, data: st.DataObject) -> None:
    largest = max(size for _, size in groups)
    groups = groups | {(stratum, 1): 3 * largest for stratum, _ in groups}
    slides = totals(groups)
    quotas = stratum_quotas(slides, draw_counts(data, sum(slides.values())))
    assert imbalance(fill(groups, quotas), quotas) == 0


def test_meet_in_a_large_cohort_without_single_slides() -> None:
    groups = {("A", 2): 200, ("A", 5): 31, ("B", 3): 170, ("B", 4): 60}
    slides = totals(groups)
    counts = (911, 130, sum(slides.values()) - 1041)
    quotas = stratum_quotas(slides, counts)
    placement = meet(fill(groups, quotas), quotas, counts)
    assert miss(placement, counts) == 0
    assert imbalance(placement, quotas) <= 5


@pytest.mark.parametrize("sizes", [(7, 3, 6), (10, 11), (6, 10, 8), (4, 8)])
def test_large_cohorts_are_as_near_as_divisibility_allows(sizes: tuple[int, ...]) -> None:
    groups: Groups = {("AB"[size % 2], size): 120 for size in sizes}
    slides = totals(groups)
    total = sum(slides.values())
    counts = (total * 7 // 10 + 1, total // 10 - 2, total - total * 7 // 10 - total // 10 + 1)
    quotas = stratum_quotas(slides, counts)
    placement = meet(fill(groups, quotas), quotas, counts)
    assert miss(placement, counts) == least_miss(gcd(*sizes), counts)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 6), st.lists(st.integers(0, 5), min_size=3, max_size=3), st.data())
def test_least_miss_against_trying_every_multiple(
    unit: int, multiples: list[int], data: st.DataObject
) -> None:
    total = unit * sum(multiples)
    counts = draw_counts(data, total)
    steps = range(0, total + 1, unit)
    tries = [(a, b, total - a - b) for a in steps for b in steps if a + b <= total]
    want = min(sum(abs(x - y) for x, y in zip(sizes, counts, strict=True)) for sizes in tries)
    assert least_miss(unit, counts) == want


def test_large_patients_go_to_every_split() -> None:
    groups = {("A", 1): 900, ("A", 5): 20}
    placement = fill(groups, {"A": (700, 100, 200)})
    assert placement["A", 5] == (14, 2, 4)
    assert placement["A", 1] == (630, 90, 180)


# Sharing whole numbers in proportion.


weights = st.lists(st.integers(0, 50), min_size=1, max_size=6).filter(sum)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 500), weights)
def test_shares_add_up_and_are_within_one(total: int, parts: list[int]) -> None:
    shares = largest_remainder(total, parts)
    assert sum(shares) == total
    for share, weight in zip(shares, parts, strict=True):
        assert abs(share - total * weight / sum(parts)) < 1


def test_hand_computed_shares() -> None:
    assert largest_remainder(10, [6, 3, 2]) == [5, 3, 2]
    assert largest_remainder(3, [0, 1, 1]) == [0, 2, 1]
    assert largest_remainder(0, [0, 0]) == [0, 0]


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_quotas_meet_both_margins(data: st.DataObject) -> None:
    sizes = data.draw(st.dictionaries(st.text("ab", max_size=3), st.integers(1, 40), min_size=1))
    total = sum(sizes.values())
    counts = draw_counts(data, total)
    quotas = stratum_quotas(sizes, counts)
    assert {stratum: sum(row) for stratum, row in quotas.items()} == sizes
    assert tuple(map(sum, zip(*quotas.values(), strict=True))) == counts
    for stratum, row in quotas.items():
        for share, count in zip(row, counts, strict=True):
            assert share >= 0
            assert abs(share - sizes[stratum] * count / total) < 2
