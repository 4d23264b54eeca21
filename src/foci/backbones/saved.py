"""Save and load a trained classifier: a folder of ``weights.safetensors`` and ``backbone.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch import Tensor

from foci.backbones.base import ARCHITECTURES, Backbone
from foci.backbones.freezing import fingerprint
from foci.errors import CheckpointError, FociError
from foci.files.atomic import write_whole
from foci.files.bounds import check_regular, read_json
from foci.files.hashes import EDITED, check_format, was_changed, with_own_hash
from foci.outputs import Output

WEIGHTS, RECORD = "weights.safetensors", "backbone.json"
FORMAT = 1
"""Of ``backbone.json``; any other is refused."""

_NOT_WIDTHS = ("landmarks",)
"""Integers in a config that no tensor has as a dimension."""


class FeatureRange(BaseModel):
    """A number of every training slide: its median and its quartiles."""

    model_config = ConfigDict(frozen=True)

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> FeatureRange:
        """Summarise one number per slide.

        >>> FeatureRange.of([1.0, 2.0, 3.0])
        FeatureRange(low=1.5, median=2.0, high=2.5)
        """
        low, median, high = (float(one) for one in np.percentile(values, (25, 50, 75)))
        return cls(low=low, median=median, high=high)


class TrainingData(BaseModel):
    """The features that a model was trained on, so that an audit can compare its own with them.

    Encoders that the feature files name, layouts and tile sizes with their unit (``"256 px"``) each
    with the number of slides; :meth:`foci.Bag.fingerprint` of every training slide, by slide; and
    what :attr:`foci.Bag.feature_norm` and :attr:`foci.Bag.feature_mean` are on these slides.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    width: int
    encoders: dict[str, int] = Field(default_factory=dict)
    layouts: dict[str, int] = Field(default_factory=dict)
    tile_sizes: dict[str, int] = Field(default_factory=dict)
    fingerprints: dict[str, str] = Field(default_factory=dict)
    feature_norm: FeatureRange | None = None
    feature_mean: FeatureRange | None = None


class ModelRecord(BaseModel):
    """Schema of ``backbone.json``.

    ``foci train`` writes more than the fields named here (history, versions); they are kept as
    they are.

    Attributes:
        config: The class's constructor arguments.
        fingerprint: Hash of architecture, config and weights.
        classes: Class names in the order of the logits; empty if unknown.
        output: What the logits are; None for classes.
        units: Mean and standard deviation of the value that a model of numbers was trained on; its
            number is in these units.
        n_cap: Most tiles per bag in training; None for all.
        trained_on: Slides of the training split.
        data: Their features; None if unknown.
        metrics: Scores by split and name.
        own_sha256: SHA-256 of all other entries.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    format: int
    architecture: str
    config: dict[str, Any]
    fingerprint: str
    parameters: int
    classes: tuple[str, ...] = ()
    output: Output | None = None
    units: tuple[float, float] = (0.0, 1.0)
    n_cap: int | None = None
    recipe: dict[str, Any] = Field(default_factory=dict)
    trained_on: tuple[str, ...] = ()
    data: TrainingData | None = None
    metrics: dict[str, Any] = Field(default_factory=dict)
    own_sha256: str | None = None

    @property
    def split_seed(self) -> int:
        """Seed of the patient split that the model was trained with."""
        return int(self.recipe.get("seed", 0))

    def test_score(self, name: str) -> float | None:
        """A score of the model on its own test split, where one was recorded."""
        scores = self.metrics.get("test")
        value = scores.get(name) if isinstance(scores, dict) else None
        return float(value) if isinstance(value, int | float) else None

    def tile_cap(self, default: int | None) -> int | None:
        """Most tiles per bag in training, or the default where nothing was recorded."""
        return self.n_cap if "n_cap" in self.model_fields_set else default


def save(backbone: Backbone, folder: str | Path, **fields: Any) -> Path:
    """Save a classifier of a registered architecture to a folder, created if it does not exist.

    The weights come first, so a folder with ``backbone.json`` is complete. ``fields`` are further
    content of that file: classes, recipe, metrics, history.
    """
    from safetensors.torch import save as to_bytes

    if backbone.architecture not in ARCHITECTURES.with_plugins():
        what = "is not a registered architecture"
        raise CheckpointError(backbone.architecture, what, "save the model itself")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    digest = fingerprint(backbone)
    tensors = {k: v.detach().cpu().contiguous() for k, v in backbone.state_dict().items()}
    content = {
        "format": FORMAT,
        "architecture": backbone.architecture,
        "config": backbone.config,
        "parameters": sum(p.numel() for p in backbone.parameters()),
        "fingerprint": digest,
        **fields,
    }
    write_whole(folder / WEIGHTS, to_bytes(tensors, {"fingerprint": digest}))
    write_whole(folder / RECORD, json.dumps(with_own_hash(content), indent=2) + "\n")
    return folder


def read_record(folder: str | Path) -> ModelRecord:
    """Read ``backbone.json``; refused if its entries no longer have their hash."""
    path = Path(folder) / RECORD
    try:
        content = read_json(path)
    except FileNotFoundError:
        raise CheckpointError(path, "does not exist", "give a folder made by foci train") from None
    except ValueError as error:
        raise CheckpointError(path, f"is not JSON ({error})", "train again") from error
    if not isinstance(content, dict):
        raise CheckpointError(path, "does not describe a backbone", "train again")
    check_format(path, content, FORMAT, "train again", CheckpointError)
    if was_changed(content):
        raise CheckpointError(path, "was changed since it was written", EDITED)
    try:
        return ModelRecord.model_validate(content)
    except ValidationError:
        raise CheckpointError(path, "does not describe a backbone", "train again") from None


def load_folder(folder: str | Path, record: ModelRecord | None = None) -> Backbone:
    """Load the classifier of a folder, frozen, in the precision in which it was saved.

    Refused unless the weights have the fingerprint that ``backbone.json`` names; ``record`` is its
    content, where it has been read already.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    record = read_record(folder) if record is None else record
    path = Path(folder) / WEIGHTS
    try:
        check_regular(path)
        # copied, because load_file maps the file, and a file may be overwritten
        tensors = {name: tensor.clone() for name, tensor in load_file(path).items()}
    except FileNotFoundError:
        raise CheckpointError(path, "does not exist", "copy the whole folder") from None
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(path, f"cannot be read ({error})", "copy the folder again") from error
    backbone = _empty_backbone(record, tensors, Path(folder) / RECORD)
    try:
        backbone.load_state_dict(tensors, assign=True)
    except RuntimeError as error:
        raise CheckpointError(path, f"does not fit backbone.json ({error})", "copy both") from error
    if fingerprint(backbone) != record.fingerprint:
        raise CheckpointError(path, "is not the weights that backbone.json names", "copy both")
    return backbone.requires_grad_(False).eval()


def _empty_backbone(record: ModelRecord, tensors: Mapping[str, Tensor], path: Path) -> Backbone:
    """The described backbone on the meta device: shapes only, no memory.

    Every width is a dimension of some tensor, and there are no more layers than tensors.
    """
    dimensions = (width for tensor in tensors.values() for width in tensor.shape)
    widest = max(len(tensors), *dimensions, 0)
    for name, value in record.config.items():
        if name not in _NOT_WIDTHS and isinstance(value, int) and value > widest:
            what = f"has {name} of {value:.6g}, wider than any tensor of {WEIGHTS}"
            raise CheckpointError(path, what, "copy both files again")
    try:
        with torch.device("meta"):
            return ARCHITECTURES[record.architecture](**record.config)
    except FociError:
        raise
    except Exception as error:  # whatever a constructor makes of a config that was tampered with
        what = f"has a config that does not fit ({error})"
        raise CheckpointError(path, what, "train again") from error
