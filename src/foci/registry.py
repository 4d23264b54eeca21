"""Things that are looked up by name: plug-ins in a registry, names of a package on first use.

Installed packages add plug-ins by entry points of the groups in :data:`GROUPS`.
"""

from __future__ import annotations

import difflib
import importlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Self, TypeVar

from foci.errors import FociError

T = TypeVar("T")

_LOG = logging.getLogger("foci")

GROUPS = ("foci.backbones", "foci.rankings", "foci.layouts", "foci.encoders")
"""Groups of entry points by which a third-party package adds plug-ins."""


@dataclass(frozen=True)
class Plugin:
    """A plug-in of an installed package.

    Attributes:
        name: What to call it by.
        value: Where it is: ``package.module:name``.
        package: Name and version of the package.
        folder: Where that is installed.
        entry: Loads it.
    """

    name: str
    value: str
    package: str
    folder: str
    entry: EntryPoint

    def load(self) -> Any:
        """Import what the entry point names.

        Raises:
            FociError: Whatever goes wrong, in one line.
        """
        try:
            return self.entry.load()
        except Exception as error:  # a foreign package may fail anywhere
            why = " ".join(f"{type(error).__name__}: {error}".split())
            fix = f"fix or remove {self.package}"
            raise FociError(f"plug-in {self.name}", f"cannot be loaded ({why})", fix) from error


def find_plugins(group: str) -> list[Plugin]:
    """Plug-ins of one group in the packages on Python's path; none of them is imported."""
    found = []
    for entry in entry_points(group=group):
        package, folder = "", ""
        if entry.dist is not None:
            package = f"{entry.dist.name} {entry.dist.version}"
            folder = str(entry.dist.locate_file(""))
        found.append(Plugin(entry.name, entry.value, package, folder, entry))
    return found


class Registry(dict[str, T]):
    """Names of things of one kind, in the order of registration; a wrong name gets a suggestion.

    Plug-ins of installed packages are looked for when a name is not known, or all are asked for.
    One that cannot be loaded is left out with a warning.

    Args:
        kind: What is registered, in the words of an error message ("backbone", "ranking").
        group: Entry points of plug-ins of this kind, if there may be any.
        adapt: Makes the entry of a name and of what its entry point names; None for none.

    >>> greetings: Registry[str] = Registry("greeting")
    >>> greetings.add("hello", "Hello!")
    'Hello!'
    >>> greetings["helo"]
    Traceback (most recent call last):
    foci.errors.FociError: helo: is not a known greeting; did you mean 'hello'? Known: hello
    """

    def __init__(
        self,
        kind: str,
        group: str | None = None,
        adapt: Callable[[str, Any], T | None] = lambda name, loaded: loaded,
    ) -> None:
        super().__init__()
        self.kind, self.group, self.adapt = kind, group, adapt
        self.failed: dict[str, FociError] = {}
        self._complete = group is None

    def add(self, name: str, entry: T) -> T:
        """Register ``entry`` under ``name``; a name can be used only once."""
        if name in self:
            raise FociError(name, f"is already a registered {self.kind}", "choose another name")
        self[name] = entry
        return entry

    def with_plugins(self) -> Self:
        """This registry, with the plug-ins of installed packages in it."""
        if self._complete or self.group is None:
            return self
        self._complete, own = True, set(self)
        for plugin in find_plugins(self.group):
            try:
                if plugin.name in own:
                    what = f"is already a registered {self.kind}"
                    raise FociError(f"plug-in {plugin.name}", what, "choose another name")
                loaded = plugin.load()
                if plugin.name in self:  # importing it has registered it
                    continue
                if (entry := self.adapt(plugin.name, loaded)) is not None:
                    self.add(plugin.name, entry)
            except FociError as error:
                self.failed[plugin.name] = error
                _LOG.warning("%s", error)
        return self

    def __missing__(self, name: str) -> T:
        if not self._complete and name in self.with_plugins():
            return self[name]
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
