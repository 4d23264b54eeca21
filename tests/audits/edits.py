"""Typed records with something changed."""

from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel

M = TypeVar("M", bound=BaseModel)


def edited(record: M, change: Callable[[dict[str, Any]], None]) -> M:
    """The same record after its content, as a dictionary, was changed in place."""
    content = record.model_dump()
    change(content)
    return type(record).model_validate(content)
