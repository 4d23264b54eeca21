"""Synthetic tissue shapes: one to three ragged pieces on a grid of tiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foci.demo.connected import Neighbours, neighbours, pieces
from foci.demo.fields import smooth_field

FEWEST, MOST = 120, 600
"""Tiles of a slide."""

_MEDIAN, _SPREAD = 250, 0.35
_COVER = 0.3
_RAGGED = 0.3
_ISLAND = 8


@dataclass(frozen=True, eq=False)
class Layout:
    """The tiles of a slide on its grid.

    Attributes:
        cells: ``[N, 2]`` int64, column and row of every tile, row by row.
        columns: Width of the canvas in tiles.
        rows: Height of the canvas in tiles.
        touching: Neighbours of every tile.
        piece: ``[N]``, which piece of tissue each tile belongs to.
    """

    cells: NDArray[np.int64]
    columns: int
    rows: int
    touching: Neighbours
    piece: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.cells)


def lay_out(rng: np.random.Generator) -> Layout:
    r"""Draw a canvas and its tissue.

    The number of tiles wanted is log-normal, :math:`n = 250\, e^{0.35 z}` clipped to [120, 600].
    Pieces of tissue are bumps side by side at :math:`c_p` with radii :math:`r_p`, made ragged by a
    smooth field f, and the tissue is where the sum is highest:

    .. math:: h(u) = \max_p\, \big(1 - \lVert (u - c_p) / r_p \rVert^2\big) + 0.3\, f(u), \qquad
       \text{tissue} = \text{the } n \text{ cells with the largest } h

    Islands of fewer than 8 tiles are dropped, as tissue segmentation does, unless that would leave
    fewer than 120 tiles.
    """
    wanted = int(np.clip(_MEDIAN * np.exp(_SPREAD * rng.normal()), FEWEST, MOST))
    n_pieces = int(rng.choice([1, 2, 3], p=[0.4, 0.4, 0.2]))
    aspect = rng.uniform(1.1, 1.5) * (1 if n_pieces == 1 else 1.3)
    rows = round(np.sqrt(wanted / _COVER / aspect))
    columns = round(rows * aspect)
    inside = np.stack(np.meshgrid(np.arange(1, columns - 1), np.arange(1, rows - 1)), axis=-1)
    cells = inside.reshape(-1, 2).astype(np.int64)
    height = _bumps(rng, cells, n_pieces, columns, rows)
    height += _RAGGED * smooth_field(rng, cells, wavelength=rows / 2)
    highest = np.sort(np.argsort(-height, kind="stable")[:wanted])
    cells = _without_islands(cells[highest])
    touching = neighbours(cells)
    return Layout(cells, columns, rows, touching, pieces(touching))


def _bumps(
    rng: np.random.Generator, cells: NDArray[np.int64], n_pieces: int, columns: int, rows: int
) -> NDArray[np.float64]:
    slot = columns / n_pieces
    highest = np.full(len(cells), -np.inf)
    for number in range(n_pieces):
        centre = np.array([(number + rng.uniform(0.42, 0.58)) * slot, rng.uniform(0.4, 0.6) * rows])
        radii = rng.uniform(0.3, 0.5, size=2) * [slot, rows]
        bump = 1 - (((cells - centre) / radii) ** 2).sum(axis=1)
        highest = np.maximum(highest, bump)
    return highest


def _without_islands(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    piece = pieces(neighbours(cells))
    kept = cells[np.bincount(piece)[piece] >= _ISLAND]
    return kept if len(kept) >= FEWEST else cells
