"""Frozen slide classifiers: seven of the paper, their presets, and any other by adapter."""

from foci.backbones import (
    abmil,  # noqa: F401
    acmil,  # noqa: F401
    acmil_mha,  # noqa: F401
    asmil,  # noqa: F401
    asmil_query,  # noqa: F401
    attrimil,  # noqa: F401
    clam,  # noqa: F401
    clam_mb,  # noqa: F401
    mhim,  # noqa: F401
    mhim_selfattn,  # noqa: F401
    transmil,  # noqa: F401
    transmil_nystrom,  # noqa: F401
)
from foci.backbones.adapter import CallableBackbone
from foci.backbones.batch import Batch, pad
from foci.backbones.checkpoints import load
from foci.backbones.contract import Backbone, Capabilities
from foci.backbones.fingerprint import fingerprint
from foci.backbones.folder import save
from foci.backbones.objective import Objective
from foci.backbones.presets import ARCHITECTURES, available, create, presets

__all__ = [
    "ARCHITECTURES",
    "Backbone",
    "Batch",
    "CallableBackbone",
    "Capabilities",
    "Objective",
    "available",
    "create",
    "fingerprint",
    "load",
    "pad",
    "presets",
    "save",
]
