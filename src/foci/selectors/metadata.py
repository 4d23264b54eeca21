"""Schema of ``selector.json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveInt,
    ValidationError,
    model_validator,
)

from foci.backbones.base import GateSite
from foci.errors import CheckpointError
from foci.files.bounded import read_json
from foci.files.hashes import check_format
from foci.selectors.fitting import Target
from foci.selectors.identity import Identity
from foci.selectors.recipes import SelectorRecipe
from foci.selectors.selector import FitEpoch

FORMAT = 1
"""Of ``selector.json``; any other is refused."""

_REFIT = "fit the selector again"


class HeadShape(BaseModel):
    """Constructor arguments of the head.

    A head that starts as evidence has columns, and a width of 0 without a correction.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    d: PositiveInt
    outputs: PositiveInt
    hidden: NonNegativeInt
    columns: NonNegativeInt


class SelectorMetadata(BaseModel):
    """Everything but the weights; further entries (slides, versions) are in ``model_extra``.

    Attributes:
        format: Format number of the file.
        backbone: Identity of the backbone that the selector belongs to.
        head: Widths of the head.
        fingerprint: Hash of the weights.
        recipe: How it was fitted.
        seed: Of its initialisation, order and noise.
        target: Which class the kept tiles should support.
        site: Where the gate acted.
        best_epoch: Counted from 1; 0 if no epoch was better than the start, evidence.
        history: One entry per epoch.
        own_sha256: SHA-256 of all other entries.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    format: int
    backbone: Identity
    head: HeadShape
    fingerprint: str
    recipe: SelectorRecipe
    seed: NonNegativeInt
    target: Target
    site: GateSite
    best_epoch: NonNegativeInt
    history: Annotated[tuple[FitEpoch, ...], Field(min_length=1)]
    own_sha256: str | None = None

    @model_validator(mode="after")
    def _epochs_agree(self) -> SelectorMetadata:
        if [entry.epoch for entry in self.history] != list(range(1, len(self.history) + 1)):
            raise ValueError("history does not count its epochs from 1")
        first = None if self.recipe.start == "random" else 0
        if max((e.epoch for e in self.history if e.best), default=first) != self.best_epoch:
            raise ValueError("best_epoch is not the best of history")
        return self


def read_metadata(path: Path) -> SelectorMetadata:
    """Read and validate a ``selector.json``."""
    try:
        stored = read_json(path)
    except (FileNotFoundError, NotADirectoryError):
        raise CheckpointError(path, "does not exist", "give a folder made by foci fit") from None
    except OSError as error:
        what = f"cannot be read ({error.strerror})"
        raise CheckpointError(path, what, "give a folder made by foci fit") from error
    except ValueError as error:
        raise CheckpointError(path, f"is not JSON ({error})", _REFIT) from None
    if isinstance(stored, dict):
        check_format(path, stored, FORMAT, _REFIT, CheckpointError)
    try:
        return SelectorMetadata.model_validate_json(json.dumps(stored), strict=True)
    except ValidationError as error:
        raise CheckpointError(path, _fault(error), _REFIT) from None


def _fault(error: ValidationError) -> str:
    first = error.errors()[0]
    said = first["msg"].removeprefix("Value error, ")
    place = ".".join(map(str, first["loc"]))
    return f"does not describe a selector ({f'{place}: ' if place else ''}{said})"
