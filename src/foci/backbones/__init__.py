"""MIL classifiers of whole slides: the paper's seven, five more, and an adapter for others."""

from foci.backbones import models
from foci.backbones.base import (
    ARCHITECTURES,
    Backbone,
    Batch,
    Capabilities,
    Objective,
    available,
    create,
    declared,
    declares,
    pad,
    presets,
)
from foci.backbones.callable import CallableBackbone
from foci.backbones.checkpoints import load
from foci.backbones.freezing import fingerprint
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
    "declared",
    "declares",
    "fingerprint",
    "load",
    "models",
    "pad",
    "presets",
    "save",
]
