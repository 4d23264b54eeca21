"""Checkpoints of other projects, recognised by their tensors and read without executing them."""

from foci.backbones.checkpoints.expect import Agreement, agree, check_answers
from foci.backbones.checkpoints.load import (
    CheckpointFacts,
    LoadedCheckpoint,
    OpenCheckpoint,
    checkpoint_files,
    inspect,
    load,
    open_checkpoint,
)

__all__ = [
    "Agreement",
    "CheckpointFacts",
    "LoadedCheckpoint",
    "OpenCheckpoint",
    "agree",
    "check_answers",
    "checkpoint_files",
    "inspect",
    "load",
    "open_checkpoint",
]
