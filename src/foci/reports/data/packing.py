"""Pack integers and probabilities into as few bits as they need, as base64 text."""

from __future__ import annotations

import base64

import numpy as np
from numpy.typing import ArrayLike, NDArray

Packed = tuple[int, int, str]
"""``(bits, length, base64)``: the bits of each number, least significant first, end to end."""

FINE, COARSE, EXACT_P = 12, 8, 24
"""Bits of a probability that is shown as a number, of one that is only drawn, and of one that is
as good as stored."""


def pack(values: ArrayLike, bits: int | None = None) -> Packed:
    """Pack non-negative integers into base64 text.

    Args:
        values: ``[n]`` integers.
        bits: Bits per number; None for as many as the largest number needs.

    >>> pack([1, 2, 3])
    (2, 3, 'OQ==')
    """
    numbers = np.asarray(values, dtype=np.uint32).ravel()
    width = int(numbers.max(initial=0)).bit_length() or 1 if bits is None else bits
    planes = (numbers[:, None] >> np.arange(width, dtype=np.uint32)) & 1
    data = np.packbits(planes.astype(np.uint8), bitorder="little")
    return width, len(numbers), base64.b64encode(data.tobytes()).decode("ascii")


def unpack(packed: Packed) -> NDArray[np.int64]:
    """Unpack integers: the inverse of :func:`pack`.

    >>> unpack(pack([5, 0, 1023])).tolist()
    [5, 0, 1023]
    """
    bits, length, text = packed
    data = np.frombuffer(base64.b64decode(text), dtype=np.uint8)
    planes = np.unpackbits(data, count=bits * length, bitorder="little").reshape(length, bits)
    numbers: NDArray[np.int64] = planes.astype(np.int64) @ (1 << np.arange(bits, dtype=np.int64))
    return numbers


def pack_probabilities(values: ArrayLike, bits: int = FINE) -> Packed:
    r"""Round probabilities to steps of :math:`1 / (2^{bits} - 1)` and pack them.

    >>> unpack(pack_probabilities([0.0, 0.5, 1.0], bits=8)).tolist()
    [0, 128, 255]
    """
    top = (1 << bits) - 1
    return pack(np.rint(np.clip(np.asarray(values, dtype=np.float64), 0, 1) * top), bits)
