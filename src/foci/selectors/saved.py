"""Save and load a fitted selector: ``selector.safetensors`` and ``selector.json``."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from torch import Tensor

from foci.atomic import sweep, write_whole
from foci.backbones.base import Backbone
from foci.backbones.freezing import fingerprint, home
from foci.errors import CheckpointError, FociError
from foci.selectors.head import SelectorHead
from foci.selectors.metadata import HeadShape, SelectorMetadata, read_metadata
from foci.selectors.selector import FittedSelector, Selector

WEIGHTS, METADATA = "selector.safetensors", "selector.json"


def check_free(folder: str | Path) -> None:
    """Refuse a folder that already holds a selector, or a path that is no folder."""
    folder = Path(folder)
    if (folder / METADATA).exists():
        raise FociError(folder, "already holds a fitted selector", "choose another --out")
    if any(path.exists() and not path.is_dir() for path in (folder, *folder.parents)):
        raise FociError(folder, "is no folder", "choose another --out")


def prepare_folder(folder: Path) -> Path:
    """Make the folder of a fit, and remove half-written files of one that was killed."""
    check_free(folder)
    folder.mkdir(parents=True, exist_ok=True)
    sweep(folder)
    return folder


def save(fitted: FittedSelector, folder: str | Path) -> Path:
    """Save a selector; weights come first, so a folder with ``selector.json`` is complete."""
    from safetensors.torch import save as to_bytes

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    heads = {"best": fitted.best.head, "last": fitted.last.head}
    tensors = {
        f"{epoch}/{name}": value.detach().cpu().contiguous().clone()
        for epoch, head in heads.items()
        for name, value in head.state_dict().items()
    }
    content = {
        "backbone": asdict(fitted.best.identity),
        "head": {name: getattr(fitted.best.head, name) for name in HeadShape.model_fields},
        "fingerprints": {epoch: fingerprint(head) for epoch, head in heads.items()},
        "recipe": fitted.recipe.model_dump(),
        "seed": fitted.seed,
        "target": fitted.target,
        "site": fitted.site,
        "best_epoch": fitted.best_epoch,
        **fitted.metadata,
        "history": [asdict(epoch) for epoch in fitted.history],
    }
    write_whole(folder / WEIGHTS, to_bytes(tensors))
    write_whole(folder / METADATA, json.dumps(content, indent=2) + "\n")
    return folder


def load(folder: str | Path, backbone: Backbone) -> FittedSelector:
    """Load a selector for the backbone that it was fitted on.

    Raises:
        FociError: If the backbone is another one.
        CheckpointError: If the folder is incomplete or damaged.
    """
    path = Path(folder) / METADATA
    metadata = read_metadata(path)
    metadata.backbone.check(backbone)
    _check_shape(path, metadata, backbone)
    tensors = _tensors(Path(folder) / WEIGHTS)
    best, last = (
        Selector(
            _head(Path(folder) / WEIGHTS, tensors, metadata, epoch, backbone),
            backbone,
            metadata.backbone,
        )
        for epoch in ("best", "last")
    )
    return FittedSelector(
        best=best,
        last=last,
        recipe=metadata.recipe,
        seed=metadata.seed,
        target=metadata.target,
        site=metadata.site,
        history=metadata.history,
        metadata=dict(metadata.model_extra or {}),
    )


def _check_shape(path: Path, metadata: SelectorMetadata, backbone: Backbone) -> None:
    outputs = backbone.n_classes if metadata.recipe.class_conditional else 1
    d = backbone.d_token
    wanted = HeadShape(d=d, outputs=outputs, hidden=metadata.recipe.hidden(d))
    if metadata.head != wanted:
        what = (
            f"describes a head ({metadata.head}) that does not fit backbone and recipe ({wanted})"
        )
        raise CheckpointError(path, what, "fit the selector again")


def _tensors(path: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return dict(load_file(path))
    except (SafetensorError, OSError) as error:
        raise CheckpointError(path, f"cannot be read ({error})", "copy the folder again") from error


def _head(
    path: Path,
    tensors: dict[str, Tensor],
    metadata: SelectorMetadata,
    epoch: str,
    backbone: Backbone,
) -> SelectorHead:
    device, dtype = home(backbone)
    head = SelectorHead(**metadata.head.model_dump()).to(dtype)
    part = f"{epoch}/"
    try:
        own = {k.removeprefix(part): v for k, v in tensors.items() if k.startswith(part)}
        head.load_state_dict(own)
    except RuntimeError as error:
        raise CheckpointError(path, f"does not fit {METADATA} ({error})", "copy both") from error
    if fingerprint(head) != getattr(metadata.fingerprints, epoch):
        raise CheckpointError(path, f"is not the weights that {METADATA} names", "copy both")
    return head.to(device).requires_grad_(False)
