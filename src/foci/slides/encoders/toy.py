"""A toy encoder without weights: colours and edges of a tile, for trying the way without a GPU.

It knows nothing of pathology. The same pixels give the same features on every machine.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foci.errors import FociError
from foci.slides.encoders.encoder import Encoder, EncoderOptions

BINS = 9
WIDTH = 3 * (2 + 3 + BINS + 2)
"""Per colour: mean and deviation, three quantiles, a histogram, two edge strengths."""

_QUANTILES = (0.1, 0.5, 0.9)
_DENSITY = -np.log((np.arange(256) + 1) / 256)
"""Optical density of every value of a pixel: stain adds up in it, light does not."""

_TYPICAL = np.array([*[0.25] * 5, *[1 / BINS] * BINS] * 3 + [0.1] * 6)
_LEAST = 0.01


def build(options: EncoderOptions) -> Encoder:
    """The toy encoder; it takes no weights."""
    if options.weights is not None:
        raise FociError(options.weights, "is not needed by the toy encoder", "leave --weights out")
    return Encoder("toy", WIDTH, encode)


def encode(tiles: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Features of a batch of tiles, ``[B, H, W, 3]`` to ``[B, 48]``."""
    return np.stack([_tile(tile) for tile in tiles]).astype(np.float32)


def _tile(tile: NDArray[np.uint8]) -> NDArray[np.float64]:
    colours = np.ascontiguousarray(tile.transpose(2, 0, 1))
    counts = [np.bincount(colour.ravel(), minlength=256) for colour in colours]
    measured = np.concatenate([*(_spread(one) for one in counts), _edges(colours)])
    # on a log scale a little of a rare colour shows
    features: NDArray[np.float64] = np.log((measured + _LEAST) / _TYPICAL)
    return features


def _spread(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Mean, deviation, quantiles and histogram of one colour's optical density."""
    share = counts / counts.sum()
    mean = share @ _DENSITY
    deviation = np.sqrt(share @ (_DENSITY - mean) ** 2)
    below = np.cumsum(share)
    quantiles = _DENSITY[np.searchsorted(below, _QUANTILES)]
    bins = np.add.reduceat(share, np.arange(BINS) * 256 // BINS)
    return np.concatenate([[mean, deviation], quantiles, bins])


def _edges(colours: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Mean step between neighbouring pixels, in each colour and both directions."""
    values = np.ascontiguousarray(colours[:, ::2, ::2]).astype(np.int16)
    steps = [np.abs(np.diff(values, axis=axis)) for axis in (2, 1)]
    return np.concatenate([step.reshape(3, -1).mean(axis=1) for step in steps]) / 64
