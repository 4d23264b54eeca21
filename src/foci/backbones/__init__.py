"""Frozen slide classifiers: seven of the paper, their presets, and any other by adapter."""

from foci.backbones import (
    abmil,  # noqa: F401
)
from foci.backbones.batch import Batch, pad
from foci.backbones.contract import Backbone, Capabilities
from foci.backbones.objective import Objective
from foci.backbones.presets import ARCHITECTURES, available, create, presets

__all__ = [
    "ARCHITECTURES",
    "Backbone",
    "Batch",
    "Capabilities",
    "Objective",
    "available",
    "create",
    "pad",
    "presets",
]
