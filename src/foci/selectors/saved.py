"""A fitted selector on disk: ``selector.safetensors`` and ``selector.json`` in one folder."""

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
from foci.selectors.metadata import HeadShape, SelectorFacts, read_facts
from foci.selectors.selector import FittedSelector, Selector

WEIGHTS, FACTS = "selector.safetensors", "selector.json"


def check_free(folder: str | Path) -> None:
    """Refuse a folder that no selector can be fitted into."""
    folder = Path(folder)
    if (folder / FACTS).exists():
        raise FociError(folder, "already holds a fitted selector", "choose another --out")
    if any(path.exists() and not path.is_dir() for path in (folder, *folder.parents)):
        raise FociError(folder, "is no folder", "choose another --out")


def enter(folder: Path) -> Path:
    """A folder for a new fit, or for one that was killed: what it was just writing is removed."""
    check_free(folder)
    folder.mkdir(parents=True, exist_ok=True)
    sweep(folder)
    return folder


def save(fitted: FittedSelector, folder: str | Path) -> Path:
    """Write a selector; the weights come first, so a folder with ``selector.json`` is whole."""
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
        "head": {"d": heads["best"].d, "outputs": heads["best"].outputs},
        "fingerprints": {epoch: fingerprint(head) for epoch, head in heads.items()},
        "recipe": fitted.recipe.model_dump(),
        "seed": fitted.seed,
        "target": fitted.target,
        "site": fitted.site,
        "best_epoch": fitted.best_epoch,
        **fitted.facts,
        "history": [asdict(epoch) for epoch in fitted.history],
    }
    write_whole(folder / WEIGHTS, to_bytes(tensors))
    write_whole(folder / FACTS, json.dumps(content, indent=2) + "\n")
    return folder


def load(folder: str | Path, backbone: Backbone) -> FittedSelector:
    """The selector of a folder, for the classifier that it was fitted on and no other.

    Raises:
        FociError: If the classifier is another one.
        CheckpointError: If the folder is not whole.
    """
    path = Path(folder) / FACTS
    facts = read_facts(path)
    facts.backbone.check(backbone)
    _check_shape(path, facts, backbone)
    tensors = _tensors(Path(folder) / WEIGHTS)
    best, last = (
        Selector(
            _head(Path(folder) / WEIGHTS, tensors, facts, epoch, backbone), backbone, facts.backbone
        )
        for epoch in ("best", "last")
    )
    return FittedSelector(
        best=best,
        last=last,
        recipe=facts.recipe,
        seed=facts.seed,
        target=facts.target,
        site=facts.site,
        history=facts.history,
        facts=dict(facts.model_extra or {}),
    )


def _check_shape(path: Path, facts: SelectorFacts, backbone: Backbone) -> None:
    outputs = backbone.n_classes if facts.recipe.class_conditional else 1
    wanted = HeadShape(d=backbone.d_token, outputs=outputs)
    if facts.head != wanted:
        what = f"describes a head ({facts.head}) that does not fit backbone and recipe ({wanted})"
        raise CheckpointError(path, what, "fit the selector again")


def _tensors(path: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return dict(load_file(path))
    except (SafetensorError, OSError) as error:
        raise CheckpointError(path, f"cannot be read ({error})", "copy the folder again") from error


def _head(
    path: Path, tensors: dict[str, Tensor], facts: SelectorFacts, epoch: str, backbone: Backbone
) -> SelectorHead:
    device, dtype = home(backbone)
    head = SelectorHead(facts.head.d, facts.head.outputs).to(dtype)
    part = f"{epoch}/"
    try:
        own = {k.removeprefix(part): v for k, v in tensors.items() if k.startswith(part)}
        head.load_state_dict(own)
    except RuntimeError as error:
        raise CheckpointError(path, f"does not fit {FACTS} ({error})", "copy both") from error
    if fingerprint(head) != getattr(facts.fingerprints, epoch):
        raise CheckpointError(path, f"is not the weights that {FACTS} names", "copy both")
    return head.to(device).requires_grad_(False)
