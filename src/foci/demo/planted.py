"""One slide of the demo, from its plan to its tiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foci.demo.features import Palette, encode
from foci.demo.layout import lay_out
from foci.demo.patients import PlannedSlide
from foci.demo.tissue import TissueMap, map_tissue

PATCH_SIZE = 256
"""Side of a tile in pixels at the target magnification."""

TARGET_MAGNIFICATION = 20
"""0.5 micrometres per pixel."""


@dataclass(frozen=True, eq=False)
class PlantedSlide:
    """A slide with its answer key.

    Attributes:
        plan: Name, patient, class, split and site.
        features: ``[N, D]`` float32.
        coords: ``[N, 2]`` int64, top-left corner (x, y) of each tile in level-0 pixels.
        patch_size: Side of a tile in level-0 pixels.
        size: Width and height of level 0.
        tissue: What the tiles show, and which are witnesses.
    """

    plan: PlannedSlide
    features: NDArray[np.float32]
    coords: NDArray[np.int64]
    patch_size: int
    size: tuple[int, int]
    tissue: TissueMap


def plant(rng: np.random.Generator, plan: PlannedSlide, palette: Palette) -> PlantedSlide:
    """Draw the tiles of one planned slide."""
    layout = lay_out(rng)
    tissue = map_tissue(rng, layout)
    features = encode(rng, palette, tissue, label=plan.label, site=plan.site, hard=plan.hard)
    patch_size = PATCH_SIZE * plan.magnification // TARGET_MAGNIFICATION
    beyond = rng.integers(patch_size, size=2)
    return PlantedSlide(
        plan=plan,
        features=features,
        coords=layout.cells * patch_size,
        patch_size=patch_size,
        size=(
            layout.columns * patch_size + int(beyond[0]),
            layout.rows * patch_size + int(beyond[1]),
        ),
        tissue=tissue,
    )
