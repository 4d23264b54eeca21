"""Checkpoints of other projects, recognised by their tensors and read without executing them."""

from foci.backbones.checkpoints.loading import CheckpointFacts, inspect, load

__all__ = ["CheckpointFacts", "inspect", "load"]
