"""Sharing whole numbers in proportion."""

from hypothesis import given, settings
from hypothesis import strategies as st

from foci.bags.splits import largest_remainder, stratum_quotas

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
    first = data.draw(st.integers(0, total))
    second = data.draw(st.integers(0, total - first))
    counts = (first, second, total - first - second)

    quotas = stratum_quotas(sizes, counts)

    assert {stratum: sum(row) for stratum, row in quotas.items()} == sizes
    assert tuple(map(sum, zip(*quotas.values(), strict=True))) == counts
    for stratum, row in quotas.items():
        for share, count in zip(row, counts, strict=True):
            assert share >= 0
            assert abs(share - sizes[stratum] * count / total) < 2
