"""Validate settings with pydantic, with one-line error messages."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from foci.errors import FociError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

M = TypeVar("M", bound=BaseModel)


def configure(model: type[M], values: dict[str, Any]) -> M:
    """Build a pydantic model from plain values, with a one-line error.

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
        if isinstance(cause, FociError):  # raised by a validator of ours
            raise cause from None
        raise FociError(*_in_plain_words(first, values)) from None


def _in_plain_words(error: ErrorDetails, values: Mapping[str, Any]) -> tuple[str, str, str]:
    """Where, what and fix, for a value of the wrong type."""
    given, place = error["input"], error["loc"]
    where, what = ".".join(map(str, place)), f"cannot be {given!r}"
    if error["type"] in ("tuple_type", "list_type"):
        listed = given.split(",") if isinstance(given, str) else [given]
        return where, what, f"give a list: {listed}"
    if error["type"] == "string_type":
        whole = values.get(str(place[0]))
        if len(place) == 2 and isinstance(whole, (list, tuple)):
            # YAML reads yes and no as True and False: nobody knows what was written
            unknown = any(isinstance(name, bool) for name in whole)
            names = "'...'" if unknown else f"{[str(name) for name in whole]}"
            return str(place[0]), f"cannot be {list(whole)}", f"give names as text: {names}"
        return where, what, f"give text: {str(given)!r}"
    return where, what, error["msg"]
