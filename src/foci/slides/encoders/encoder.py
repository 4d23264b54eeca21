"""What a tile encoder is: a function from pictures to features, with its name and width."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class EncoderOptions:
    """What an encoder may be built from.

    Attributes:
        weights: Local file of weights, where the encoder needs one.
        device: Torch device.
    """

    weights: Path | None = None
    device: str = "cpu"


@dataclass(frozen=True, eq=False)
class Encoder:
    """A tile encoder, ready to use.

    Attributes:
        name: As TRIDENT spells it, where TRIDENT has it; part of the feature folder's name.
        width: Length D of a feature vector.
        encode: ``[B, H, W, 3]`` uint8 to ``[B, D]`` float32.
        weights_sha256: Of the file of weights; None where there is none.
    """

    name: str
    width: int
    encode: Callable[[NDArray[np.uint8]], NDArray[np.float32]]
    weights_sha256: str | None = None
