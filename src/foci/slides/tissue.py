"""Find tissue on a slide: stained pixels of a small picture of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from foci.slides.image import Box, SlideImage, fitted

if TYPE_CHECKING:
    from PIL.Image import Image

MASK_MPP = 8.0
"""Micrometres per pixel of the mask: a tile of 128 micrometres has 16 x 16 of them."""

_LONGEST = 6000
_SATURATION = (8, 18)
"""Otsu's threshold is kept in this range, so that a slide full of tissue is not split in two and
an empty one is not searched for specks. Of 255, as are the dark pixels."""

_DARK = 30
"""Darker pixels are scanner borders and ink, whatever their saturation."""


@dataclass(frozen=True, eq=False)
class TissueMask:
    """Tissue of one slide.

    Attributes:
        mask: ``[H, W]`` bool over ``box``.
        box: The part of the slide that it covers.
    """

    mask: NDArray[np.bool_]
    box: Box

    def share(self, x: NDArray[Any], y: NDArray[Any], side: float) -> NDArray[np.float64]:
        """Share of tissue in squares with these top-left corners, ``[n]``."""
        height, width = self.mask.shape
        down = self.box.width / width, self.box.height / height
        sums = np.zeros((height + 1, width + 1))
        sums[1:, 1:] = self.mask.cumsum(axis=0).cumsum(axis=1)
        left, right = (_pixels(x - self.box.x + by, down[0], width) for by in (0, side))
        top, bottom = (_pixels(y - self.box.y + by, down[1], height) for by in (0, side))
        inside = sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left]
        area = np.maximum((right - left) * (bottom - top), 1)
        covered: NDArray[np.float64] = inside / area
        return covered


def find_tissue(slide: SlideImage, mpp: float) -> TissueMask:
    """The tissue of a slide, from a picture at :data:`MASK_MPP`.

    Args:
        slide: The slide.
        mpp: Its micrometres per level-0 pixel.
    """
    longest = round(max(slide.bounds[2:]) * min(1.0, mpp / MASK_MPP))
    size = fitted(slide.bounds, min(max(longest, 1), _LONGEST))
    return TissueMask(stained(slide.read(slide.bounds, size)), slide.bounds)


def stained(picture: Image) -> NDArray[np.bool_]:
    """Pixels that are stained: saturated above Otsu's threshold, smoothed by a pixel.

    Args:
        picture: In RGB.

    Returns:
        ``[H, W]`` bool.
    """
    from skimage.filters import median, threshold_otsu
    from skimage.morphology import closing, disk, opening

    _, saturated, value = (np.asarray(band) for band in picture.convert("HSV").split())
    saturation = median(saturated, disk(1))
    flat = saturation.min() == saturation.max()
    threshold = np.clip(0 if flat else threshold_otsu(saturation), *_SATURATION)
    mask = (saturation > threshold) & (value > _DARK)
    tissue: NDArray[np.bool_] = opening(closing(mask, disk(2)), disk(1))
    return tissue


def _pixels(position: NDArray[Any], down: float, limit: int) -> NDArray[np.int64]:
    return np.clip(np.rint(position / down), 0, limit).astype(np.int64)
