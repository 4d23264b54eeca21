"""Base class of the typed records in an audit folder, with NaN and NumPy taken care of."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict


class Record(BaseModel):
    """An immutable pydantic model; fields that a newer version has added are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


def plain(value: Any) -> Any:
    """NumPy arrays and scalars to Python values; NaN and infinity to None, in lists too.

    >>> plain(np.array([1.0, np.nan])), plain(float("inf")), plain(3)
    ([1.0, None], None, 3)
    """
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


Number = Annotated[float | None, BeforeValidator(plain)]
"""A float; None where it is not defined."""

Defined = Annotated[float, BeforeValidator(plain)]
"""A float that is always defined."""

Numbers = Annotated[list[float | None], BeforeValidator(plain)]
"""A list of floats; None where one is not defined."""

Counts = Annotated[list[int], BeforeValidator(plain)]
"""A list of whole numbers."""
