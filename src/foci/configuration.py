"""Strict settings whose mistakes are answered in one line."""

from __future__ import annotations

import difflib
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from foci.errors import FociError

M = TypeVar("M", bound=BaseModel)


def configure(model: type[M], values: dict[str, Any]) -> M:
    """Build settings from plain values.

    Raises:
        FociError: Naming the first wrong setting, what is wrong with it, and the nearest known
            name if it was a typo.

    >>> class Recipe(BaseModel, extra="forbid"):
    ...     epochs: int = 20
    >>> configure(Recipe, {"epoch": 3})
    Traceback (most recent call last):
    foci.errors.FociError: epoch: is not a setting of Recipe; did you mean 'epochs'?
    """
    try:
        return model(**values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or model.__name__
        if first["type"] == "extra_forbidden":
            near = difflib.get_close_matches(where, model.model_fields, n=1)
            fix = (
                f"did you mean {near[0]!r}?" if near else f"known: {', '.join(model.model_fields)}"
            )
            raise FociError(where, f"is not a setting of {model.__name__}", fix) from None
        if first["type"] == "missing":
            raise FociError(where, "is missing", "give it") from None
        cause = first.get("ctx", {}).get("error")
        if isinstance(cause, FociError):  # a validator that has its own words
            raise cause from None
        what = f"cannot be {first['input']!r}"
        raise FociError(where, what, first["msg"]) from None
