"""Bits: every number comes back, and no more bits are spent than needed."""

import base64

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foci.reports.models import COARSE, FINE, pack, pack_probabilities, unpack


@given(st.integers(1, 24).flatmap(
    lambda bits: st.tuples(st.just(bits), st.lists(st.integers(0, 2**bits - 1)))
))  # fmt: skip
def test_numbers_come_back(drawn: tuple[int, list[int]]) -> None:
    bits, numbers = drawn
    packed = pack(numbers, bits)
    assert packed[:2] == (bits, len(numbers))
    assert unpack(packed).tolist() == numbers
    assert len(base64.b64decode(str(packed[2]))) == -(-bits * len(numbers) // 8)


@pytest.mark.parametrize(("largest", "bits"), [(0, 1), (1, 1), (2, 2), (255, 8), (1023, 10)])
def test_the_largest_number_sets_the_width(largest: int, bits: int) -> None:
    assert pack([0, largest])[0] == bits


def test_by_hand() -> None:
    # 1, 2, 3 in two bits each, first number in the lowest bits: 11 10 01.
    assert pack([1, 2, 3], 2) == (2, 3, base64.b64encode(bytes([0b111001])).decode())


@pytest.mark.parametrize("bits", [COARSE, FINE])
def test_probabilities_are_rounded_to_the_nearest_step(bits: int) -> None:
    values = np.random.default_rng(0).random(500)
    top = 2**bits - 1
    found = unpack(pack_probabilities(values, bits)) / top
    assert np.abs(found - values).max() <= 0.5 / top + 1e-12
    assert unpack(pack_probabilities([0.0, 1.0], bits)).tolist() == [0, top]
