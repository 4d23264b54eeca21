"""Save and load a fitted selector: ``selector.safetensors`` and ``selector.json``.

A fit writes its state, the weights and then the metadata, and removes the state last: a folder with
``selector.json`` is complete, and a fit that is killed at any time can be started again.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict
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

from foci.backbones.base import Backbone, GateSite
from foci.backbones.freezing import device_and_dtype, fingerprint
from foci.errors import CheckpointError, FociError
from foci.files.atomic import sweep, write_whole
from foci.files.bounds import check_regular, read_json
from foci.files.hashes import EDITED, check_format, was_changed, with_own_hash
from foci.files.lock import alone_in
from foci.reveal.pooled import pools
from foci.selectors import Target
from foci.selectors.evidence import column_names
from foci.selectors.recipes import SelectorRecipe
from foci.selectors.selector import (
    EvidenceHead,
    FitEpoch,
    FittedSelector,
    Head,
    Identity,
    Selector,
    SelectorHead,
)

FORMAT = 1
"""Of ``selector.json``; any other is refused."""

WEIGHTS, METADATA = "selector.safetensors", "selector.json"

STATE = "fitting.safetensors"
"""State of an unfinished fit."""

RESULT = (WEIGHTS, METADATA)
"""Files of a fitted selector."""

FILES = (*RESULT, STATE)
"""Files that a fit writes."""

_REFIT = "fit the selector again"


class HeadShape(BaseModel):
    """Constructor arguments of a head; only one that starts as evidence has columns."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    d: PositiveInt
    outputs: PositiveInt
    hidden: NonNegativeInt
    columns: NonNegativeInt

    def make(self) -> Head:
        """A head of this shape, its weights drawn from the global random state."""
        if self.columns:
            return EvidenceHead(self.d, self.outputs, self.hidden, self.columns)
        return SelectorHead(self.d, self.outputs, self.hidden)


def head_shape(backbone: Backbone, recipe: SelectorRecipe) -> HeadShape:
    """Shape of the head that a recipe gives a backbone."""
    tuned = recipe.start == "tuned"
    return HeadShape(
        d=backbone.d_token,
        outputs=backbone.n_classes if recipe.class_conditional else 1,
        # where tiles do not interact there is nothing to correct
        hidden=0 if tuned and pools(backbone) else recipe.hidden(backbone.d_token),
        columns=len(column_names(backbone)) if tuned else 0,
    )


class SelectorMetadata(BaseModel):
    """Everything but the weights; see :class:`~foci.selectors.selector.FittedSelector`.

    ``fingerprint`` is a hash of the weights, ``own_sha256`` one of all other entries. Further
    entries (classes, slides, versions, notes) are in ``model_extra``.
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
    except OSError as error:
        missing = isinstance(error, FileNotFoundError | NotADirectoryError)
        what = "does not exist" if missing else f"cannot be read ({error.strerror})"
        raise CheckpointError(path, what, "give a folder made by foci fit") from error
    except ValueError as error:
        raise CheckpointError(path, f"is not JSON ({error})", _REFIT) from None
    if isinstance(stored, dict):
        check_format(path, stored, FORMAT, _REFIT, CheckpointError)
    try:
        return SelectorMetadata.model_validate_json(json.dumps(stored), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        message = first["msg"].removeprefix("Value error, ")
        what = f"does not describe a selector ({f'{place}: ' if place else ''}{message})"
        raise CheckpointError(path, what, _REFIT) from None


def check_free(folder: str | Path) -> None:
    """Refuse a folder that already holds a selector, or a path that is no folder.

    A selector beside the state of its fit is not refused: that fit was killed at its very end.
    """
    folder = Path(folder)
    if (folder / METADATA).exists() and not (folder / STATE).exists():
        raise occupied(folder)
    if any(path.exists() and not path.is_dir() for path in (folder, *folder.parents)):
        raise FociError(folder, "is no folder", "choose another --out")


def occupied(folder: Path) -> FociError:
    """The error for a folder that already holds a selector."""
    return FociError(folder, "already holds a fitted selector", "choose another --out")


@contextlib.contextmanager
def fit_folder(folder: str | Path | None) -> Iterator[Path | None]:
    """Make and lock the folder of a fit, and remove half-written files of one that was killed.

    The state is removed after everything else. None needs no folder.
    """
    if folder is None:
        yield None
        return
    folder = Path(folder)
    check_free(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with alone_in(folder, "foci fit"):
        check_free(folder)
        sweep(folder)
        yield folder
    (folder / STATE).unlink(missing_ok=True)


def save(fitted: FittedSelector, folder: str | Path) -> Path:
    """Save a selector; weights come first, so a folder with ``selector.json`` is complete."""
    from safetensors.torch import save as to_bytes

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    head = fitted.best.head
    columns = head.columns if isinstance(head, EvidenceHead) else 0
    tensors = {k: v.detach().cpu().contiguous().clone() for k, v in head.state_dict().items()}
    content = {
        "format": FORMAT,
        "backbone": asdict(fitted.best.identity),
        "head": {"d": head.d, "outputs": head.outputs, "hidden": head.hidden, "columns": columns},
        "fingerprint": fingerprint(head),
        "recipe": fitted.recipe.model_dump(),
        "seed": fitted.seed,
        "target": fitted.target,
        "site": fitted.site,
        "best_epoch": fitted.best_epoch,
        **fitted.metadata,
        "history": [asdict(epoch) for epoch in fitted.history],
    }
    write_whole(folder / WEIGHTS, to_bytes(tensors))
    write_whole(folder / METADATA, json.dumps(with_own_hash(content), indent=2) + "\n")
    return folder


def load(folder: str | Path, backbone: Backbone) -> FittedSelector:
    """Load a selector for the backbone that it was fitted on.

    Raises:
        FociError: If the backbone is another one.
        CheckpointError: If the folder is incomplete, damaged or changed since it was written.
    """
    path, weights = Path(folder) / METADATA, Path(folder) / WEIGHTS
    metadata = read_metadata(path)
    metadata.backbone.check(backbone)
    wanted = head_shape(backbone, metadata.recipe)
    if metadata.head != wanted:
        what = f"describes a head ({metadata.head}) that does not fit backbone and recipe"
        raise CheckpointError(path, f"{what} ({wanted})", _REFIT)
    if was_changed(json.loads(path.read_bytes())):
        raise CheckpointError(path, "was changed since it was written", EDITED)
    return FittedSelector(
        best=Selector(_load_head(weights, metadata, backbone), backbone, metadata.backbone),
        recipe=metadata.recipe,
        seed=metadata.seed,
        target=metadata.target,
        site=metadata.site,
        history=metadata.history,
        metadata=dict(metadata.model_extra or {}),
    )


def _load_head(path: Path, metadata: SelectorMetadata, backbone: Backbone) -> Head:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    device, dtype = device_and_dtype(backbone)
    head = metadata.head.make().to(dtype)
    try:
        check_regular(path)
        head.load_state_dict(load_file(path))
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(path, f"cannot be read ({error})", "copy the folder again") from error
    except RuntimeError as error:
        raise CheckpointError(path, f"does not fit {METADATA} ({error})", "copy both") from error
    if fingerprint(head) != metadata.fingerprint:
        raise CheckpointError(path, f"is not the weights that {METADATA} names", "copy both")
    return head.to(device).requires_grad_(False)
