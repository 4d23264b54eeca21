"""Paint tiles of the demo: one look per kind of tissue, and one per class on its witnesses."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from foci.demo.cohort import KINDS, PATCH_SIZE

VARIANTS = 4
"""Pictures per look; a slide repeats them."""

WITNESS, HARD_WITNESS, DISTRACTOR = 10, 7, 2
"""Glands in the colour of a class: on a witness, on one that carries less, on a distractor."""

_GROUND = {
    "stroma": (236, 178, 200),
    "fat": (246, 206, 214),
    "lymphoid": (206, 178, 214),
    "necrosis": (226, 190, 182),
    "normal epithelium": (224, 170, 205),
    "tumour": (214, 150, 196),
    "pen": (70, 110, 190),
    "fold": (150, 90, 150),
}
_NUCLEI = {
    "stroma": (20, 5),
    "fat": (4, 4),
    "lymphoid": (330, 4),
    "necrosis": (60, 3),
    "normal epithelium": (110, 6),
    "tumour": (130, 8),
    "pen": (0, 0),
    "fold": (90, 6),
}
"""Number of nuclei on a tile and their radius in pixels."""

_NUCLEUS = np.array([96, 62, 140])
_CLASS_TINT = np.array([[205, 60, 120], [60, 140, 190], [225, 150, 40]])
"""What a class looks like: red for A-type, blue for B-type, amber for C-type."""

_LUMEN = np.array([245, 236, 240])


@cache
def tile_picture(kind: int, label: int, glands: int, variant: int) -> NDArray[np.uint8]:
    """A tile of 256 x 256 pixels; the same arguments always give the same pixels.

    Args:
        kind: Index into :data:`foci.demo.cohort.KINDS`.
        label: The class that the glands show.
        glands: How many of them; 0 on all other tiles.
        variant: Below :data:`VARIANTS`.

    Returns:
        ``[256, 256, 3]``.
    """
    name = KINDS[kind]
    rng = np.random.default_rng((kind, label, glands, variant))
    cloud = gaussian_filter(rng.normal(size=(PATCH_SIZE, PATCH_SIZE)), 9, mode="wrap")
    steps = np.rint(cloud / cloud.std()) * 6  # few values: the file stays small
    canvas = np.array(_GROUND[name]) + steps[..., None]
    nuclei, radius = _NUCLEI[name]
    for centre in rng.uniform(0, PATCH_SIZE, size=(nuclei, 2)):
        _disc(canvas, centre, radius * rng.uniform(0.7, 1.3), _NUCLEUS)
    for centre in rng.uniform(20, PATCH_SIZE - 20, size=(glands, 2)):
        _disc(canvas, centre, rng.uniform(18, 26), _CLASS_TINT[label])
        _disc(canvas, centre, 7, _LUMEN)
    painted: NDArray[np.uint8] = np.clip(np.rint(canvas), 0, 255).astype(np.uint8)
    return painted


def _disc(
    canvas: NDArray[np.float64],
    centre: NDArray[np.float64],
    radius: float,
    colour: NDArray[np.int64],
) -> None:
    """Paint a disc; what lies beyond the tile's edge is cut off."""
    low = np.maximum(np.floor(centre - radius).astype(int), 0)
    high = np.minimum(np.ceil(centre + radius).astype(int) + 1, PATCH_SIZE)
    y, x = np.mgrid[low[0] : high[0], low[1] : high[1]]
    inside = (y - centre[0]) ** 2 + (x - centre[1]) ** 2 <= radius**2
    canvas[low[0] : high[0], low[1] : high[1]][inside] = colour
