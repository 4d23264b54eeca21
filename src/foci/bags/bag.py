"""Bag: the tile features and coordinates of one slide."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

Unit = Literal["px", "um", "grid"]
"""Level-0 pixels; micrometres where the slide's resolution is unknown; or bare grid indices."""


@dataclass(frozen=True)
class Provenance:
    """Where the features of a bag come from.

    Attributes:
        layout: Name of the reader, or ``"memory"``.
        path: The feature file.
        encoder: Tile encoder, where the file says so.
        notes: What the reader had to assume or leave open, in plain sentences.
    """

    layout: str = "memory"
    path: Path | None = None
    encoder: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Bag:
    """Tile features and coordinates of one slide.

    Attributes:
        slide_id: Always a string.
        features: ``[N, D]`` float32.
        coords: ``[N, 2]`` int64, top-left corner (x, y) of each tile, or None.
        unit: What ``coords`` and ``patch_size`` are measured in.
        patch_size: Side of a tile in the same unit, or None.
        patch_size_inferred: True if ``patch_size`` was estimated from the spacing of the tiles.
        kept: ``[N]`` int64, index in the file of each tile that a pre-filter kept; None means all.
        n_in_file: Number of tiles in the file, where a pre-filter has dropped some.
        provenance: Where it comes from.

    >>> bag = Bag("slide-1", np.ones((3, 4), dtype=np.float32))
    >>> len(bag), bag.width, bag.tiles.tolist(), bag.n_total
    (3, 4, [0, 1, 2], 3)
    """

    slide_id: str
    features: NDArray[np.float32]
    coords: NDArray[np.int64] | None = None
    unit: Unit = "px"
    patch_size: int | None = None
    patch_size_inferred: bool = False
    kept: NDArray[np.int64] | None = None
    n_in_file: int | None = None
    provenance: Provenance = field(default_factory=Provenance)

    def __len__(self) -> int:
        return len(self.features)

    @property
    def width(self) -> int:
        """Feature width D."""
        return int(self.features.shape[1])

    @property
    def n_total(self) -> int:
        """Number of tiles before any pre-filter."""
        return len(self) if self.n_in_file is None else self.n_in_file

    @property
    def tiles(self) -> NDArray[np.int64]:
        """Row of every tile in its feature file."""
        return np.arange(len(self), dtype=np.int64) if self.kept is None else self.kept

    @property
    def x(self) -> Tensor:
        """The features as a torch tensor that shares memory with the array."""
        import torch

        return torch.from_numpy(self.features)

    def __repr__(self) -> str:
        parts: list[Any] = [f"{self.slide_id!r}", f"{len(self)} tiles x {self.width}"]
        if len(self) < self.n_total:
            parts.append(f"of {self.n_total}")
        if self.coords is not None:
            parts.append(f"coords in {self.unit}")
        parts.append(self.provenance.layout)
        return f"Bag({', '.join(parts)})"
