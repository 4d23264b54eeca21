"""Validate settings of a classifier and its objective against their type hints."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping
from functools import reduce
from types import SimpleNamespace, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic import BeforeValidator, ConfigDict, Field, PositiveInt, create_model
from torch import nn

from foci.backbones.base import Backbone
from foci.backbones.registry import PRESETS
from foci.configuration import configure
from foci.errors import FociError

_GIVEN = ("self", "d_in", "n_classes", "backbone")
_STRICT = ConfigDict(
    strict=True, extra="forbid", allow_inf_nan=False, protected_namespaces=(), frozen=True
)


def checked_widths(name: str, preset: str, widths: Mapping[str, Any]) -> dict[str, Any]:
    """Validate constructor arguments that replace a preset's: names, types and ranges.

    Integers count something and are at least 1; a dropout lies in [0, 1).

    >>> checked_widths("transmil", "paper", {"heads": 0})
    Traceback (most recent call last):
    foci.errors.FociError: heads: cannot be 0; Input should be greater than 0
    """
    chosen = PRESETS[name].get(preset)
    if chosen is None:  # refused, with the presets there are, where the classifier is created
        return dict(widths)
    hints = _settings(chosen.architecture)
    possible = {key: _possible(key, hint) for key, hint in hints.items()}
    return _checked(f"{name} ({preset})", possible, widths)


def checked_objective(backbone: Backbone, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Validate settings of the classifier's own objective: names and types."""
    if not settings:
        return {}
    hints = _settings(type(backbone.make_objective()))
    typed = {key: _each(hint, _typed) for key, hint in hints.items()}
    return _checked(f"the objective of {backbone.architecture}", typed, settings)


def _settings(cls: type) -> dict[str, Any]:
    """Type hints of a constructor's settings, including those that it passes on to its bases."""
    found: dict[str, Any] = {}
    for owner in cls.__mro__[: cls.__mro__.index(nn.Module)]:
        init = vars(owner).get("__init__")
        if init is None:
            continue
        parameters = inspect.signature(init).parameters.values()
        own = {
            p.name: Any if p.annotation is p.empty else p.annotation
            for p in parameters
            if p.name not in _GIVEN and p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)
        }
        # One by one: the backbone's own type is often known to the type checker alone.
        hints = get_type_hints(SimpleNamespace(__annotations__=own), init.__globals__)
        found = {**hints, **found}
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            break
    return found


def _checked(what: str, hints: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    if values and not hints:
        raise FociError(what, "has no settings", f"leave out {', '.join(values)}")
    fields: dict[str, Any] = {name: (hint, None) for name, hint in hints.items()}
    model = create_model(what, __config__=_STRICT, **fields)
    checked: dict[str, Any] = configure(model, dict(values)).model_dump(exclude_unset=True)
    return checked


def _number(value: Any) -> Any:
    """Number from text, because YAML reads 1e-3, which has no dot, as a string."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


_Number = Annotated[float, BeforeValidator(_number)]
_Share = Annotated[_Number, Field(ge=0, lt=1)]


def _typed(hint: Any) -> Any:
    return _Number if hint is float else hint


def _possible(name: str, hint: Any) -> Any:
    def bounded(one: Any) -> Any:
        if one is float and name.endswith("dropout"):
            return _Share
        return PositiveInt if one is int else _typed(one)

    return _each(hint, bounded)


def _each(hint: Any, change: Callable[[Any], Any]) -> Any:
    """Apply a change to a type, or to each type of a union."""
    if get_origin(hint) in (Union, UnionType):
        return reduce(operator.or_, map(change, get_args(hint)))
    return change(hint)
