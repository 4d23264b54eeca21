"""Read JSON and YAML whose size and depth are bounded; every failure is a ValueError."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

_MOST_BYTES = 256 * 1024**2
_MOST_VALUES = 100_000
_TOO_DEEP = "it is nested too deeply"


def read_json(path: Path) -> Any:
    """The value in a JSON file.

    Raises:
        ValueError: If it is no JSON, no UTF-8 text, too large, or nested too deeply.
        OSError: If the file cannot be opened.
    """
    try:
        return json.loads(read_text(path))
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def yaml_value(text: str, loader: type[yaml.SafeLoader] = yaml.SafeLoader) -> Any:
    """The value of a YAML text, if it is not too large once its aliases are written out.

    >>> yaml_value("{kappa: &k 0.9, kappas: [*k, 0.8]}")
    {'kappa': 0.9, 'kappas': [0.9, 0.8]}

    Raises:
        ValueError: If it is no YAML, too large, or nested too deeply.
    """
    try:
        parser = loader(text)
        try:
            node = parser.get_single_node()
            if node is None:
                return None
            if _size(node, {}) > _MOST_VALUES:
                raise ValueError(f"its aliases stand for more than {_MOST_VALUES} values")
            return parser.construct_document(node)
        finally:
            parser.dispose()
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _size(node: yaml.Node, known: dict[int, int]) -> int:
    """Number of values below a node with aliases written out; one that holds itself is endless."""
    if not isinstance(node, yaml.CollectionNode):
        return 1
    if id(node) not in known:
        known[id(node)] = _MOST_VALUES + 1  # while it is counted: an alias to it leads back here
        pairs = (entry if isinstance(entry, tuple) else (entry,) for entry in node.value)
        known[id(node)] = 1 + sum(_size(child, known) for pair in pairs for child in pair)
    return known[id(node)]


def check_regular(path: Path) -> None:
    """Refuse a pipe or a device: opening one may wait forever, and reading one may never end.

    Raises:
        ValueError: If it is one.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ValueError("it is no file but a pipe or a device")


def read_text(path: Path) -> str:
    """A text file in UTF-8, unless it is far larger than settings and records ever are.

    Raises:
        ValueError: If it is no UTF-8 text, or too large.
        OSError: If the file cannot be opened.
    """
    check_regular(path)
    if path.stat().st_size > _MOST_BYTES:
        raise ValueError(f"it is larger than {_MOST_BYTES // 1024**2} MB")
    return path.read_text(encoding="utf-8")
