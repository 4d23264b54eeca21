"""Any supported checkpoint as a frozen backbone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foci.backbones.base import Backbone
from foci.backbones.checkpoints.assign import empty, fitted, left_out
from foci.backbones.checkpoints.containers import state_dict_of
from foci.backbones.checkpoints.files import read_content
from foci.backbones.checkpoints.formats import chosen, recognised
from foci.backbones.registry import ARCHITECTURES, PRESETS
from foci.backbones.saved import FACTS, WEIGHTS, load_folder
from foci.errors import CheckpointError


@dataclass(frozen=True)
class CheckpointFacts:
    """What a checkpoint is, without its numbers.

    Attributes:
        path: The file, or the folder.
        family: Whose file it is: ``"CLAM-SB"``, ``"ABMIL of torchmil"``, ... or ``"FOCI"``.
        architecture: Name of the backbone's class.
        config: The class's constructor arguments.
        parameters: Number of parameters.
        notes: What was assumed because no tensor shows it, and what was left out.
        ignored: Tensors that play no part in a prediction.
    """

    path: Path
    family: str
    architecture: str
    config: dict[str, Any]
    parameters: int
    notes: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


def inspect(path: str | Path, **options: Any) -> CheckpointFacts:
    """What :func:`load` would make of a checkpoint; refuses what it refuses.

    Args:
        path: As for :func:`load`.
        **options: As for :func:`load`.
    """
    path = Path(path)
    if (folder := _folder(path)) is not None:
        return _own(folder, options)[0]
    return _foreign(path, options)[0]


def load(
    path: str | Path, *, expect: str | None = None, d_in: int | None = None, **options: Any
) -> Backbone:
    """The backbone of a checkpoint, frozen and in ``eval`` mode.

    Args:
        path: A folder that FOCI wrote (or its ``weights.safetensors``), or a file of another
            project: ``.pt``, ``.pth``, ``.ckpt``, ``.bin`` or ``.safetensors``. Objects pickled
            into it are never executed.
        expect: Refuse another architecture (``"clam-sb"``) or classifier (``"transmil"``).
        d_in: Refuse another feature width.
        **options: What the tensors do not show (``heads``, ``aligned``, ``landmarks``,
            ``activation``, ...); :func:`inspect` says what is assumed without them.
    """
    path = Path(path)
    if (folder := _folder(path)) is not None:
        facts, backbone = _own(folder, options)
    else:
        facts, backbone = _foreign(path, options)
    _check(facts, expect, d_in)
    return backbone


def _folder(path: Path) -> Path | None:
    if path.is_dir():
        return path
    described = path.name in (WEIGHTS, FACTS) and (path.parent / FACTS).is_file()
    return path.parent if described else None


def _own(folder: Path, options: Mapping[str, Any]) -> tuple[CheckpointFacts, Backbone]:
    if options:
        raise CheckpointError(
            folder, f"has no option {min(options)!r}", "backbone.json already says everything"
        )
    backbone = load_folder(folder)
    return _facts(folder, "FOCI", backbone), backbone


def _foreign(path: Path, options: Mapping[str, Any]) -> tuple[CheckpointFacts, Backbone]:
    state = state_dict_of(read_content(path), path)
    family = recognised(state)
    values, assumed = chosen(family, options, state)
    reading = family.read(state, values)
    backbone = empty(reading)
    tensors, notes = fitted(reading, backbone, family.name)
    backbone.load_state_dict(tensors, assign=True)
    backbone.requires_grad_(False).eval()
    notes = (*state.notes, *assumed, *reading.notes, *notes)
    return _facts(path, family.name, backbone, notes, left_out(reading)), backbone


def _facts(
    path: Path,
    family: str,
    backbone: Backbone,
    notes: tuple[str, ...] = (),
    ignored: tuple[str, ...] = (),
) -> CheckpointFacts:
    parameters = sum(p.numel() for p in backbone.parameters())
    architecture, config = backbone.architecture, backbone.config
    return CheckpointFacts(path, family, architecture, config, parameters, notes, ignored)


def _check(facts: CheckpointFacts, expect: str | None, d_in: int | None) -> None:
    what = f"{facts.family} ({facts.architecture}) for features of width {facts.config['d_in']}"
    if expect is not None and facts.architecture not in _architectures(expect):
        raise CheckpointError(facts.path, f"is {what}, not {expect}", "give another checkpoint")
    if d_in is not None and facts.config["d_in"] != d_in:
        raise CheckpointError(
            facts.path, f"is {what}, not {d_in}", "give features of the encoder it was trained on"
        )


def _architectures(name: str) -> set[str]:
    """Of a classifier with all its presets, or of an architecture itself."""
    if name in ARCHITECTURES and name not in PRESETS:
        return {name}
    return {preset.architecture.architecture for preset in PRESETS[name].values()}
