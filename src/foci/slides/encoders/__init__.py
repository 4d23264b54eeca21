"""Tile encoders by name: pictures of tiles become feature vectors.

A new encoder is one file with a builder, and one line here.
"""

from __future__ import annotations

from collections.abc import Callable

from foci.registry import Registry
from foci.slides.encoders import toy, uni2h
from foci.slides.encoders.encoder import Encoder, EncoderOptions

ENCODERS: Registry[Callable[[EncoderOptions], Encoder]] = Registry("encoder")
ENCODERS.add("uni2-h", uni2h.build)
ENCODERS.add("toy", toy.build)

__all__ = ["ENCODERS", "Encoder", "EncoderOptions"]
