"""Arrays in temporary files: their rows are what they were."""

from typing import Any

import numpy as np
import pytest

from foci.files.spill import LARGE, Spilled, spilled


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.uint8, np.bool_])
def test_rows(kind: Any) -> None:
    array = np.moveaxis((np.arange(2 * 5 * 3) % 7).astype(kind).reshape(2, 5, 3), 0, 1)
    kept = Spilled(array)
    assert (len(kept), kept.shape, kept.dtype, kept.nbytes) == (5, (5, 2, 3), kind, array.nbytes)
    for rows in (slice(None), slice(1, 4), slice(2, 2), 3, -1, np.array([4, 0])):
        np.testing.assert_array_equal(kept[rows], array[rows], strict=True)
    for own, row in zip(kept, array, strict=True):
        np.testing.assert_array_equal(own, row, strict=True)
    with pytest.raises(IndexError):
        kept[5]


def test_small_arrays_stay() -> None:
    small, large = np.zeros(LARGE, np.uint8), np.zeros(LARGE + 1, np.uint8)
    assert spilled(small) is small
    assert isinstance(spilled(large), Spilled)
