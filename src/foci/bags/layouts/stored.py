"""The interface of a feature layout, and raw arrays before checks and conversion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from numpy.typing import NDArray

from foci.bags.bag import Unit


@dataclass(frozen=True)
class ReadOptions:
    """Options for what a feature file does not tell.

    Attributes:
        mpp: Micrometres per level-0 pixel of the slide, to turn micrometres into pixels.
    """

    mpp: float | None = None


@dataclass(frozen=True)
class Stored:
    """Raw arrays of one feature file.

    Attributes:
        features: ``[N, D]`` or ``[1, N, D]``, any float type.
        coords: ``[N, 2]`` or ``[1, N, 2]`` (x, y), or None.
        unit: Unit of ``coords`` and ``patch_size``.
        origin: Whether ``coords`` are a tile's top-left corner or its centre.
        patch_size: Side of a tile, or None to infer it from the spacing.
        encoder: Tile encoder if the file names it.
        notes: What was assumed, in plain sentences.
    """

    features: NDArray[Any]
    coords: NDArray[Any] | None = None
    unit: Unit = "px"
    origin: Literal["corner", "centre"] = "corner"
    patch_size: float | None = None
    encoder: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Layout:
    """How one family of feature files is recognised and read.

    Attributes:
        description: One line for people.
        suffixes: File endings it may have.
        matches: Whether a file with such an ending is of this layout, judged by content.
        read: Its content.
        sidecars: Other files that ``read`` looks at; the cache notices when they change.
    """

    description: str
    suffixes: tuple[str, ...]
    matches: Callable[[Path], bool]
    read: Callable[[Path, ReadOptions], Stored]
    sidecars: Callable[[Path], tuple[Path, ...]] = lambda path: ()
