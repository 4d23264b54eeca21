"""Save and load a fitted selector: ``selector.safetensors`` and ``selector.json``."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from foci.backbones.base import Backbone
from foci.backbones.freezing import fingerprint, home
from foci.errors import CheckpointError, FociError
from foci.files.atomic import sweep, write_whole
from foci.files.hashes import EDITED, was_changed, with_own_hash
from foci.files.lock import alone_in
from foci.selectors.heads.shape import head_shape, make_head, shape_of
from foci.selectors.metadata import FORMAT, SelectorMetadata, read_metadata
from foci.selectors.selector import FittedSelector, Head, Selector

WEIGHTS, METADATA = "selector.safetensors", "selector.json"
STATE = "fitting.safetensors"
"""State of an unfinished fit; removed last."""

RESULT = (WEIGHTS, METADATA)
"""Files of a fitted selector."""

FILES = (*RESULT, STATE)
"""Files that a fit writes."""


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

    The state is removed after everything else, so that a fit that is killed before that can be
    given again, whatever it has already written. None needs no folder.
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
    tensors = {k: v.detach().cpu().contiguous().clone() for k, v in head.state_dict().items()}
    content = {
        "format": FORMAT,
        "backbone": asdict(fitted.best.identity),
        "head": shape_of(head).model_dump(),
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
    path = Path(folder) / METADATA
    metadata = read_metadata(path)
    metadata.backbone.check(backbone)
    _check_shape(path, metadata, backbone)
    if was_changed(json.loads(path.read_bytes())):
        raise CheckpointError(path, "was changed since it was written", EDITED)
    return FittedSelector(
        best=Selector(
            _head(Path(folder) / WEIGHTS, metadata, backbone), backbone, metadata.backbone
        ),
        recipe=metadata.recipe,
        seed=metadata.seed,
        target=metadata.target,
        site=metadata.site,
        history=metadata.history,
        metadata=dict(metadata.model_extra or {}),
    )


def _check_shape(path: Path, metadata: SelectorMetadata, backbone: Backbone) -> None:
    wanted = head_shape(backbone, metadata.recipe)
    if metadata.head != wanted:
        what = (
            f"describes a head ({metadata.head}) that does not fit backbone and recipe ({wanted})"
        )
        raise CheckpointError(path, what, "fit the selector again")


def _head(path: Path, metadata: SelectorMetadata, backbone: Backbone) -> Head:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    device, dtype = home(backbone)
    head = make_head(metadata.head).to(dtype)
    try:
        head.load_state_dict(load_file(path))
    except (SafetensorError, OSError) as error:
        raise CheckpointError(path, f"cannot be read ({error})", "copy the folder again") from error
    except RuntimeError as error:
        raise CheckpointError(path, f"does not fit {METADATA} ({error})", "copy both") from error
    if fingerprint(head) != metadata.fingerprint:
        raise CheckpointError(path, f"is not the weights that {METADATA} names", "copy both")
    return head.to(device).requires_grad_(False)
