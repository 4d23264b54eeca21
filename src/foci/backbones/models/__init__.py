"""One file per classifier; importing this package registers them all."""

from foci.backbones.models import (  # noqa: F401
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
