"""Schema of ``study.yaml``."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, PositiveInt, model_validator

from foci.audits.config import read_yaml
from foci.audits.settings import AuditSettings, Seed
from foci.backbones import available
from foci.bags import N_CAP
from foci.configuration import configure
from foci.errors import FociError
from foci.selectors import recipe
from foci.studies.plan.blocks import (
    BackboneEntry,
    CohortEntry,
    Efficiency,
    Overlays,
    ReadBlock,
    Sweep,
    check_names,
)
from foci.studies.plan.profiles import with_profile

_NOT_HERE = ("profile", "seeds", "kappas", "map")
"""Settings of an audit that the study gives itself."""


class Study(BaseModel):
    """One study: cohorts x backbones x seeds, sweeps around them, and how they are read.

    Attributes:
        format: Of the file.
        name: Of the study.
        profile: ``"paper"`` or ``"foci"``: the defaults of everything below.
        seeds: Each trains every backbone once, and fits its selector with the same seed.
        std: Divides by n (``"population"``, what the paper prints) or n - 1 (``"sample"``).
        n_cap: Most tiles per bag.
        cohorts: By name.
        backbones: By name.
        audit: Settings of all audits: those of :class:`foci.audits.settings.AuditSettings`.
        read: At what thresholds and counts tables are read.
        sweeps: By name.
        efficiency: What cost is measured on; None for no measurement.
        overlays: Slides of a figure; None for no figure.
        published: Whether the paper's numbers stand beside one's own.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1] = 1
    name: str = "study"
    profile: str
    seeds: tuple[Seed, ...]
    std: Literal["population", "sample"]
    n_cap: PositiveInt = N_CAP
    cohorts: dict[str, CohortEntry]
    backbones: dict[str, BackboneEntry]
    audit: dict[str, Any]
    read: ReadBlock
    sweeps: dict[str, Sweep]
    efficiency: Efficiency | None = None
    overlays: Overlays | None = None
    published: bool = False

    @model_validator(mode="before")
    @classmethod
    def _known(cls, values: Any) -> Any:
        return check_names("a study", values, list(cls.model_fields))

    @model_validator(mode="after")
    def _names_exist(self) -> Study:
        for where, names in (("cohorts", self.cohorts), ("backbones", self.backbones)):
            if not names:
                raise FociError(where, "are none", "give at least one")
        if len({*self.seeds}) != len(self.seeds) or not self.seeds:
            raise FociError("seeds", f"cannot be {list(self.seeds)}", "give each once")
        for key, entry in self.backbones.items():
            _check_among("known backbones", [entry.architecture or key], available())
            _check_among("cohorts of the study", entry.models, self.cohorts)
            for seeds in entry.models.values():
                _check_among("seeds of the study", seeds, self.seeds)
        for cohort in self.cohorts.values():
            _check_among("backbones of the study", cohort.objective, self.backbones)
        for sweep in self.sweeps.values():
            _check_among("cohorts of the study", sweep.cohorts or (), self.cohorts)
            _check_among("backbones of the study", sweep.backbones or (), self.backbones)
            _check_among("seeds of the study", sweep.seeds or (), self.seeds)
        if self.efficiency is not None and self.efficiency.cohort is not None:
            _check_among("cohorts of the study", [self.efficiency.cohort], self.cohorts)
        check_names("audit", self.audit, _audit_names())
        for sweep in self.sweeps.values():
            for name in (*sweep.recipes, *([sweep.recipe] if sweep.recipe else [])):
                recipe(name)
        self.settings(self.seeds[0])
        return self

    def settings(self, seed: int, **changes: Any) -> AuditSettings:
        """Settings of an audit with this seed; ``changes`` win over those of the study."""
        own = {"profile": self.profile, "seeds": (seed,), "kappas": self.read.kappas}
        return configure(AuditSettings, {**own, **self.audit, **changes})


def read_study(path: Path) -> Study:
    """Read a ``study.yaml``; relative paths in it start from its folder.

    Raises:
        FociError: With the file, the name that is wrong, and the nearest known name.
    """
    try:
        study = configure(Study, with_profile(read_yaml(path)))
    except FociError as error:
        where = error.where if str(path) in error.where else f"{path}, {error.where}"
        raise FociError(where, error.what, error.fix) from None
    return _with_absolute_paths(study, path.resolve().parent)


def _with_absolute_paths(study: Study, folder: Path) -> Study:
    cohorts = {name: _absolute(entry, folder) for name, entry in study.cohorts.items()}
    backbones = {
        name: entry.model_copy(
            update={
                "models": {
                    cohort: {seed: folder / path for seed, path in own.items()}
                    for cohort, own in entry.models.items()
                }
            }
        )
        for name, entry in study.backbones.items()
    }
    return study.model_copy(update={"cohorts": cohorts, "backbones": backbones})


def _absolute(entry: CohortEntry, folder: Path) -> CohortEntry:
    own = {name: getattr(entry, name) for name in CohortEntry.model_fields}
    paths = {name: folder / value for name, value in own.items() if isinstance(value, Path)}
    return entry.model_copy(update=paths)


def _audit_names() -> list[str]:
    return [name for name in AuditSettings.model_fields if name not in _NOT_HERE]


def _check_among(what: str, names: Iterable[Any], known: Iterable[Any]) -> None:
    listed = [*known]
    for name in names:
        if name not in listed:
            near = difflib.get_close_matches(str(name), map(str, listed), n=1)
            fix = (
                f"did you mean {near[0]!r}?" if near else f"they are {', '.join(map(str, listed))}"
            )
            raise FociError(str(name), f"is not among the {what}", fix)
