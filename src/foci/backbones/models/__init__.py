"""One file per classifier; importing this package registers them all."""

from foci.backbones.models import (
    abmil,
    acmil,
    asmil,
    attrimil,
    clam,
    instance,
    mhim,
    mhim_selfattn,
    transmil,
    transmil_nystrom,
)

__all__ = [
    "abmil",
    "acmil",
    "asmil",
    "attrimil",
    "clam",
    "instance",
    "mhim",
    "mhim_selfattn",
    "transmil",
    "transmil_nystrom",
]
