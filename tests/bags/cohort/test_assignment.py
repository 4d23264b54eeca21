"""Whole patients into splits, against trying everything."""

from itertools import product
from math import gcd

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foci.bags.splits import Group, fill, imbalance, least_miss, meet, miss, stratum_quotas

Groups = dict[Group, int]

small = st.dictionaries(
    st.tuples(st.sampled_from("AB"), st.integers(1, 4)), st.integers(1, 2), min_size=1, max_size=3
)
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


def nearest_by_trying_everything(groups: Groups, counts: tuple[int, int, int]) -> int:
    sizes = [size for (_, size), number in groups.items() for _ in range(number)]
    best = sum(sizes) * 2
    for choice in product(range(3), repeat=len(sizes)):
        got = [0, 0, 0]
        for split, size in zip(choice, sizes, strict=True):
            got[split] += size
        if all(n == 0 for n, wanted in zip(got, counts, strict=True) if wanted == 0):
            best = min(best, sum(abs(a - b) for a, b in zip(got, counts, strict=True)))
    return best


@settings(deadline=None, max_examples=60)
@given(large, st.data())
def test_fill_misses_no_quota_by_a_whole_patient(groups: Groups, data: st.DataObject) -> None:
    slides = totals(groups)
    quotas = stratum_quotas(slides, draw_counts(data, sum(slides.values())))
    placement = fill(groups, quotas)
    assert {group: sum(row) for group, row in placement.items()} == groups
    for stratum, quota in quotas.items():
        largest = max(size for name, size in groups if name == stratum)
        own = {group: row for group, row in placement.items() if group[0] == stratum}
        assert imbalance(own, {stratum: quota}) < largest


@settings(deadline=None, max_examples=60)
@given(large, st.data())
def test_single_slides_fill_every_quota(groups: Groups, data: st.DataObject) -> None:
    largest = max(size for _, size in groups)
    groups = groups | {(stratum, 1): 3 * largest for stratum, _ in groups}
    slides = totals(groups)
    quotas = stratum_quotas(slides, draw_counts(data, sum(slides.values())))
    assert imbalance(fill(groups, quotas), quotas) == 0


@settings(deadline=None, max_examples=60)
@given(small, st.data())
def test_meet_finds_the_nearest_there_is(groups: Groups, data: st.DataObject) -> None:
    slides = totals(groups)
    counts = draw_counts(data, sum(slides.values()))
    quotas = stratum_quotas(slides, counts)
    placement = meet(fill(groups, quotas), quotas, counts)
    assert {group: sum(row) for group, row in placement.items()} == groups
    assert miss(placement, counts) == nearest_by_trying_everything(groups, counts)


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
