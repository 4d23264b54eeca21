"""What a fit depends on: a state of another fit is not resumed."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable
from dataclasses import asdict
from enum import Enum
from pathlib import PurePath
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from foci.backbones.base import GateSite
from foci.backbones.freezing import fingerprint
from foci.bags import Cohort
from foci.bags.cohort.stamps import what_is_read
from foci.digest import digest
from foci.selectors.frozen import Identity
from foci.selectors.recipes import SelectorRecipe, Target
from foci.selectors.selector import Criterion

_PLAIN = (bool, int, float, complex, str, bytes, PurePath, Enum, np.generic, type(None))


def content(value: Any) -> Any:
    """Plain lists and strings that differ where the content differs.

    Compared are numbers, strings, paths and collections of them; tensors and arrays, byte by byte;
    models, by their weights; cohorts, by their slides, labels and feature files (name, size, time
    of change); functions, by their code, defaults and what they close over; methods and
    partials, by what they are bound to. Of anything else only the type is known, and nothing of
    what a function finds in its module.

    >>> at_least = lambda least: lambda score: score >= least
    >>> content(at_least(1)) == content(at_least(1)), content(at_least(1)) == content(at_least(2))
    (True, False)
    """
    return _content(value, ())


def _content(value: Any, around: tuple[int, ...]) -> Any:
    if id(value) in around:
        return "itself"
    inner = (*around, id(value))

    def each(values: Iterable[Any]) -> list[Any]:
        return [_content(one, inner) for one in values]

    kind = _name(type(value))
    match value:
        case _ if isinstance(value, _PLAIN):
            return [kind, repr(value)]
        case list() | tuple():
            return [kind, each(value)]
        case set() | frozenset():
            return [kind, sorted(map(str, each(value)))]
        case dict():
            return [kind, each(value.items())]
        case Tensor() | np.ndarray():
            return [kind, *_array(value)]
        case nn.Module():
            return [kind, fingerprint(value)]
        case Cohort():
            return [kind, *what_is_read(value)]
        case functools.partial():
            return [kind, each((value.func, value.args, value.keywords))]
        case MethodType():
            return [kind, each((value.__func__, held(value.__self__)))]
        case FunctionType():
            closed_over = [_cell(cell) for cell in value.__closure__ or ()]
            given = (value.__code__, value.__defaults__, value.__kwdefaults__, closed_over)
            return [_name(value), each(given)]
        case CodeType():
            return [value.co_code.hex(), value.co_names, each(value.co_consts)]
        case _ if callable(value) and hasattr(value, "__qualname__"):
            return _name(value)
        case _:
            return kind


def held(value: Any) -> list[Any]:
    """An object's type and what it holds, for :func:`content` to describe."""
    return [_name(type(value)), dict(getattr(value, "__dict__", {}))]


def _name(value: Any) -> str:
    return f"{getattr(value, '__module__', None)}.{value.__qualname__}"


def _cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _array(value: Any) -> list[str]:
    if isinstance(value, Tensor):
        plain = value.detach().cpu().contiguous().flatten()
        raw = plain.view(torch.uint8).numpy().tobytes()
    elif value.dtype.hasobject:
        return []
    else:
        raw = value.tobytes()
    return [str(value.dtype), str(tuple(value.shape)), hashlib.sha256(raw).hexdigest()]


def run_key(
    identity: Identity,
    recipe: SelectorRecipe,
    *,
    seed: int,
    target: Target,
    site: GateSite,
    train: Cohort,
    val: Cohort,
    criterion: Criterion | None,
) -> str:
    """Digest of everything that decides a selector.

    Slides are known by name, label and feature file (its name, size and time of change), with
    the classes, layout, resolution and cap of their cohort; the criterion as :func:`judge` says.
    """
    what = [asdict(identity), recipe.model_dump(), seed, target, site, content(train), content(val),
            judge(criterion)]  # fmt: skip
    return digest(what)


def judge(criterion: Criterion | None) -> Any:
    """What a criterion is known by: its attribute ``name`` if it has one, else its content.

    An object that is called is known by its class and its attributes; see
    :func:`~foci.selectors.fitting.run_key.content` for what counts.

    >>> class Constant:
    ...     def __init__(self, value): self.value = value
    ...     def __call__(self, selector): return self.value
    >>> judge(Constant(1.0)) == judge(Constant(2.0))
    False
    """
    name = getattr(criterion, "name", None)
    if isinstance(name, str):
        return ["name", name]
    is_object = criterion is not None and not hasattr(criterion, "__qualname__")
    return content([criterion, held(criterion) if is_object else None])
