"""One file per classifier; importing this package registers them all."""

from __future__ import annotations

from foci.backbones.models import (
    abmil,
    acmil,
    asmil,
    attrimil,
    clam,
    dsmil,
    mhim,
    pooling,
    transmil,
)

__all__ = [
    "abmil",
    "acmil",
    "asmil",
    "attrimil",
    "clam",
    "dsmil",
    "mhim",
    "pooling",
    "transmil",
]
