"""Checkpoints of other projects, recognised by their tensors and read without executing them."""

from foci.backbones.checkpoints.loading import (
    CheckpointFacts,
    LoadedCheckpoint,
    inspect,
    load,
    open_checkpoint,
)

__all__ = ["CheckpointFacts", "LoadedCheckpoint", "inspect", "load", "open_checkpoint"]
