"""A target names one of the classes."""

import numpy as np
import pytest

from foci.backbones.base import class_index
from foci.errors import FociError


def test_plain_and_numpy_numbers() -> None:
    assert class_index(0, 3) == 0
    assert type(class_index(np.int64(2), 3)) is int  # type: ignore[arg-type]


@pytest.mark.parametrize("target", [-1, 3, 1.0, "a"])
def test_anything_else_is_refused(target: object) -> None:
    message = "class index from 0 to 2, or None for the predicted class"
    with pytest.raises(FociError, match=message):
        class_index(target, 3)  # type: ignore[arg-type]
