"""Every published naming, by a short name."""

from tests.backbones.checkpoints import (
    official_abmil,
    official_branches,
    official_clam,
    official_instance,
    official_nystrom,
)
from tests.backbones.checkpoints.official_file import D_IN, Official

OFFICIAL: dict[str, Official] = {
    **official_nystrom.OFFICIAL,
    **official_clam.OFFICIAL,
    **official_branches.OFFICIAL,
    **official_abmil.OFFICIAL,
    **official_instance.OFFICIAL,
}

__all__ = ["D_IN", "OFFICIAL", "Official"]
