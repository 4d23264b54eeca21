"""A fitted selector on disk: ``selector.safetensors`` and ``selector.json`` in one folder."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from foci.atomic import write_whole
from foci.backbones.contract import Backbone
from foci.backbones.fingerprint import fingerprint
from foci.backbones.placement import home
from foci.errors import CheckpointError
from foci.selectors.frozen import Identity
from foci.selectors.head import SelectorHead
from foci.selectors.recipes import SelectorRecipe
from foci.selectors.selector import FitEpoch, FittedSelector, Selector

WEIGHTS, FACTS = "selector.safetensors", "selector.json"
_REFIT = "fit the selector again"
_EPOCHS = ("best", "last")
_KEYS = ("seed", "target", "site", "best_epoch")


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
    facts, path = read_facts(folder), Path(folder) / WEIGHTS
    try:
        identity = Identity.read(facts.pop("backbone"))
        shape, stated = facts.pop("head"), facts.pop("fingerprints")
        recipe = SelectorRecipe.model_validate(facts.pop("recipe"))
        history = tuple(FitEpoch(**epoch) for epoch in facts.pop("history"))
        seed, target, site, _ = (facts.pop(key) for key in _KEYS)
    except (KeyError, TypeError, ValidationError) as error:
        what = f"does not describe a selector ({type(error).__name__}: {error})"
        raise CheckpointError(Path(folder) / FACTS, what, _REFIT) from error
    best, last = (
        Selector(_head(path, shape, epoch, stated[epoch], backbone), backbone, identity)
        for epoch in _EPOCHS
    )
    best.check(backbone)
    return FittedSelector(best, last, recipe, seed, target, site, history, facts)


def _head(
    path: Path, shape: dict[str, int], epoch: str, stated: str, backbone: Backbone
) -> SelectorHead:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    device, dtype = home(backbone)
    head = SelectorHead(**shape).to(dtype)
    try:
        tensors = load_file(path)
        own = {k.removeprefix(f"{epoch}/"): v for k, v in tensors.items() if k.startswith(epoch)}
        head.load_state_dict(own)
    except (SafetensorError, OSError) as error:
        raise CheckpointError(path, f"cannot be read ({error})", "copy the folder again") from error
    except RuntimeError as error:
        raise CheckpointError(path, f"does not fit {FACTS} ({error})", "copy both") from error
    if fingerprint(head) != stated:
        raise CheckpointError(path, f"is not the weights that {FACTS} names", "copy both")
    return head.to(device).requires_grad_(False)


def read_facts(folder: str | Path) -> dict[str, Any]:
    """Content of ``selector.json``."""
    path = Path(folder) / FACTS
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise CheckpointError(path, "does not exist", "give a folder made by foci fit") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise CheckpointError(path, f"is not JSON ({error})", _REFIT) from error
    if not isinstance(facts, dict):
        raise CheckpointError(path, "does not describe a selector", _REFIT)
    return facts
