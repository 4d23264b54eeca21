"""Names of a package that are imported on first use, so that importing the package stays cheap."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


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
