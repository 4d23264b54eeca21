"""Things that are looked up by name: plug-ins in a registry, names of a package on first use."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

from foci.errors import FociError

T = TypeVar("T")


class Registry(dict[str, T]):
    """Names of things of one kind, in the order of registration; a wrong name gets a suggestion.

    Args:
        kind: What is registered, in the words of an error message ("backbone", "ranking").

    >>> greetings: Registry[str] = Registry("greeting")
    >>> greetings.add("hello", "Hello!")
    'Hello!'
    >>> greetings["helo"]
    Traceback (most recent call last):
    foci.errors.FociError: helo: is not a known greeting; did you mean 'hello'? Known: hello
    """

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def add(self, name: str, entry: T) -> T:
        """Register ``entry`` under ``name``; a name can be used only once."""
        if name in self:
            raise FociError(name, f"is already a registered {self.kind}", "choose another name")
        self[name] = entry
        return entry

    def __missing__(self, name: str) -> NoReturn:
        near = difflib.get_close_matches(name, self, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise FociError(name, f"is not a known {self.kind}", f"{hint}Known: {', '.join(self)}")


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package whose names are loaded on first use.

    Args:
        package: Dotted name of the package.
        homes: Module that defines each name; the package itself for a name that is a submodule.

    >>> look_up, names = lazy_names("foci", {"FociError": "foci.errors", "metrics": "foci"})
    >>> look_up("FociError").__module__, look_up("metrics").__name__, names()
    ('foci.errors', 'foci.metrics', ['FociError', 'metrics'])
    >>> look_up("FociErorr")
    Traceback (most recent call last):
    AttributeError: module 'foci' has no attribute 'FociErorr'
    """

    def look_up(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if homes[name] == package:
            return importlib.import_module(f"{package}.{name}")
        return getattr(importlib.import_module(homes[name]), name)

    return look_up, lambda: sorted(homes)
