"""Geometry of a slide as a pyramid of square pictures, each level twice as fine as the one above.

OpenSeadragon counts levels from a single pixel: level ``l`` of an image of width ``W`` has width
:math:`W / 2^{L - l}`, where :math:`L` is the finest level.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from foci.slides.image import Box

SIDE = 512
"""Pixels of a picture."""


@dataclass(frozen=True)
class Pyramid:
    """The scanned part of a slide.

    Attributes:
        bounds: Its place in level-0 pixels.
    """

    bounds: Box

    @property
    def finest(self) -> int:
        """The level that has the slide's own resolution."""
        return math.ceil(math.log2(max(self.bounds.width, self.bounds.height, 1)))

    @property
    def coarsest(self) -> int:
        """The last level that fits into one picture."""
        return min(self.finest, int(math.log2(SIDE)))

    def part(self, level: int, column: int, row: int) -> tuple[Box, tuple[int, int]] | None:
        """What a picture covers in level-0 pixels, and its own size; None outside the slide.

        >>> Pyramid(Box(100, 0, 1000, 700)).part(10, 1, 1)
        (Box(x=612, y=512, width=488, height=188), (488, 188))
        >>> Pyramid(Box(100, 0, 1000, 700)).part(9, 0, 0)
        (Box(x=100, y=0, width=1000, height=700), (500, 350))
        """
        if not (self.coarsest <= level <= self.finest and column >= 0 and row >= 0):
            return None
        down = 2 ** (self.finest - level)
        left, top = column * SIDE * down, row * SIDE * down
        width = min(SIDE * down, self.bounds.width - left)
        height = min(SIDE * down, self.bounds.height - top)
        if width <= 0 or height <= 0:
            return None
        box = Box(self.bounds.x + left, self.bounds.y + top, width, height)
        return box, (math.ceil(width / down), math.ceil(height / down))
