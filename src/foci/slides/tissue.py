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
    from scipy.ndimage import grey_closing, grey_opening, median_filter

    _, saturated, value = (np.asarray(band) for band in picture.convert("HSV").split())
    saturation = median_filter(saturated, footprint=_disk(1), mode="nearest")
    threshold = np.clip(otsu_threshold(saturation), *_SATURATION)
    mask = (saturation > threshold) & (value > _DARK)
    closed = grey_closing(mask, footprint=_disk(2))
    tissue: NDArray[np.bool_] = grey_opening(closed, footprint=_disk(1))
    return tissue


def otsu_threshold(values: NDArray[np.uint8]) -> int:
    """Otsu's threshold: the value t that best separates the values up to t from those above.

    It maximises the variance between the two classes, ``n1 n2 (mean1 - mean2)^2``; of equal ones it
    is the smallest, and 0 if all values are the same.

    >>> otsu_threshold(np.array([3, 3, 4, 90, 91], dtype=np.uint8))
    4
    """
    low, high = int(values.min()), int(values.max())
    if low == high:
        return 0
    level = np.arange(low, high + 1)
    # single precision decides between thresholds that are all but equal, as in scikit-image
    count = np.bincount(values.ravel(), minlength=high + 1)[low:].astype(np.float32)
    below, above = np.cumsum(count), np.cumsum(count[::-1])[::-1]
    mean_below = np.cumsum(count * level) / below
    mean_above = np.cumsum((count * level)[::-1])[::-1] / above
    between = below[:-1] * above[1:] * (mean_below[:-1] - mean_above[1:]) ** 2
    return low + int(np.argmax(between))


def _disk(radius: int) -> NDArray[np.bool_]:
    """Pixels at most ``radius`` from the centre of a square."""
    offset = np.arange(-radius, radius + 1)
    disk: NDArray[np.bool_] = offset[:, None] ** 2 + offset**2 <= radius**2
    return disk


def _pixels(position: NDArray[Any], down: float, limit: int) -> NDArray[np.int64]:
    return np.clip(np.rint(position / down), 0, limit).astype(np.int64)
