"""Frozen slide classifiers: seven of the paper, their presets, and any other by adapter."""

from foci.backbones import models
from foci.backbones.base import Backbone, Capabilities
from foci.backbones.batch import Batch, pad
from foci.backbones.callable import CallableBackbone
from foci.backbones.checkpoints import load
from foci.backbones.freezing import fingerprint
from foci.backbones.objectives.base import Objective
from foci.backbones.registry import ARCHITECTURES, available, create, presets
from foci.backbones.saved import save

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
    "models",
    "pad",
    "presets",
    "save",
]
