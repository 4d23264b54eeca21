"""The model and the cohort that a configuration names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from foci.audits.config import Inputs
from foci.audits.settings import AuditSettings
from foci.backbones import Backbone
from foci.backbones.checkpoints import inspect, load
from foci.backbones.saved import FACTS, WEIGHTS, read_facts
from foci.bags import N_CAP, Cohort


@dataclass(frozen=True)
class Sources:
    """What an audit is of, or what a selector is fitted to.

    Attributes:
        backbone: The frozen classifier.
        cohort: The slides; none is read yet.
        name: What people call the model.
        split_seed: Of the patient split, if the table has none.
        model_notes: What was assumed when the checkpoint was read.
        trained_on: Slides that the model was trained on, as far as its folder says.
        places: Where everything came from, for the manifest.
    """

    backbone: Backbone
    cohort: Cohort
    name: str
    split_seed: int
    model_notes: tuple[str, ...]
    trained_on: frozenset[str]
    places: dict[str, str]


def open_sources(origin: Inputs, device: str) -> Sources:
    """Load the model and read the label table.

    Classes, tile cap and split seed are those that the model was trained with, unless the
    origin says otherwise.
    """
    facts = model_facts(origin.model)
    told = told_of(origin.model, facts)
    if origin.split_seed is not None:
        told["split_seed"] = origin.split_seed
    return Sources(
        backbone=load(origin.model, **origin.model_options).to(device),
        cohort=_cohort(origin, facts),
        places=_described(origin),
        **told,
    )


def told_of(model: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What an audit is told of a model: name, split seed, notes, and the slides it has seen.

    Args:
        model: Where it is.
        facts: Of :func:`model_facts`.
    """
    return {
        "name": _folder(model).resolve().name if facts else model.stem,
        "split_seed": facts.get("recipe", {}).get("seed", 0),
        "model_notes": () if facts else inspect(model).notes,
        "trained_on": frozenset(facts.get("trained_on", ())),
    }


def model_facts(model: Path) -> dict[str, Any]:
    """What ``foci train`` wrote beside the weights; nothing for a foreign checkpoint."""
    folder = _folder(model)
    return read_facts(folder) if (folder / FACTS).is_file() else {}


def _folder(model: Path) -> Path:
    return model.parent if model.name in (WEIGHTS, FACTS) else model


def _cohort(inputs: Inputs, facts: dict[str, Any]) -> Cohort:
    names = tuple(facts.get("classes", ()))
    cohort = inputs.read(n_cap=facts.get("n_cap", N_CAP), classes=names)
    return cohort if inputs.classes or names else with_alphabetical_classes(cohort)


def with_alphabetical_classes(cohort: Cohort) -> Cohort:
    """The cohort as it is, and a note that the order of its classes was assumed."""
    if not cohort.classes:
        return cohort
    names = ", ".join(cohort.classes)
    note = f"the checkpoint does not name its classes: taken to be {names}, in this order"
    return replace(cohort, notes=(*cohort.notes, note))


def _described(inputs: Inputs) -> dict[str, str]:
    own = inputs.model_dump(exclude={"out", *AuditSettings.model_fields}, exclude_none=True)
    return {name: _text(value) for name, value in own.items() if value != {}}


def _text(value: Any) -> str:
    if isinstance(value, Path):
        return str(value.resolve())
    if isinstance(value, dict):
        return ",".join(f"{key}={entry}" for key, entry in value.items())
    return ",".join(value) if isinstance(value, tuple) else str(value)
