"""Cells of a study, the units of work, and the plan that lists them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from foci.audits.settings import AuditSettings
from foci.backbones.saved import RECORD, WEIGHTS
from foci.backbones.training import TrainingRecipe, training_recipe
from foci.backbones.training.presets import checked_widths
from foci.errors import FociError
from foci.files.hashes import digest, file_digest
from foci.selectors import recipe, vary
from foci.studies.study import BackboneEntry, Study, Sweep, data_digest, folds, read_cohort

Kind = Literal["train", "fit", "audit", "joint", "cost"]
KINDS: tuple[Kind, ...] = ("train", "fit", "audit", "joint", "cost")
MAIN = "main"
"""The variant that everything else is compared with."""
N_CAP = "n_cap"
"""The variant with another tile cap than the study's."""


@dataclass(frozen=True)
class Cell:
    """One unit of work: a training, a fit, an audit, a joint control or a measurement of cost.

    Cells with the same cohort, backbone, variant and cap, and other seeds or folds, are replicates:
    tables pool them.

    Attributes:
        kind: What is done.
        cohort: Name of the cohort in ``study.yaml``.
        backbone: Name of the backbone in ``study.yaml``.
        seed: Of training and of the selector.
        variant: ``"main"``, the recipe of a sweep (``"no-suff"``), or the value that it varies:
            ``"lambda.hinge=0.5"`` for a sweep ``lambda`` that varies ``weights.hinge``;
            ``"n_cap"`` where only the tile cap differs.
        n_cap: Most tiles per bag.
        needs: Keys of the cells whose results it reads.
        key: Digest of everything that decides its result: the name of its folder.
        fold: Fold of a ``splits/`` folder; None for a cohort without folds.
        recipe: Recipe of the selector.
        recipe_settings: What replaces settings of the recipe.
        rankings: Of an audit; empty for the study's.
        epochs: Of a joint control.
        model: Ready-made checkpoint, where nothing is trained.
        data: Digest of the cohort's rows and feature files, to notice a change.
    """

    kind: Kind
    cohort: str
    backbone: str
    seed: int
    variant: str
    n_cap: int
    needs: tuple[str, ...]
    key: str
    fold: int | None = None
    recipe: str = "default"
    recipe_settings: dict[str, Any] = field(default_factory=dict, hash=False)
    rankings: tuple[str, ...] = ()
    epochs: int | None = None
    model: str | None = None
    data: str = ""

    @property
    def name(self) -> str:
        """The cell in words, unique within a study: ``audit/nsclc/transmil/42/main``."""
        fold = () if self.fold is None else (f"fold-{self.fold}",)
        named = () if self.kind in ("train", "cost") else (self.variant,)
        if self.variant == N_CAP:
            named = (f"{N_CAP}={self.n_cap}",)
        parts = (self.kind, self.cohort, *fold, self.backbone, str(self.seed), *named)
        return "/".join(parts)


@dataclass(frozen=True)
class Plan:
    """All cells of a study: those that others need come first.

    Attributes:
        cells: In the order in which ``foci study cell --index`` counts them.
        notes: What was assumed, as sentences.
    """

    cells: tuple[Cell, ...]
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Cell]:
        return iter(self.cells)

    def __len__(self) -> int:
        return len(self.cells)

    def __getitem__(self, key: str) -> Cell:
        if key not in self._by_key:
            what = "is no cell of this plan: study.yaml or a cohort was changed meanwhile"
            raise FociError(key, what, "start the study again")
        return self._by_key[key]

    @cached_property
    def _by_key(self) -> dict[str, Cell]:
        return {cell.key: cell for cell in reversed(self.cells)}

    @property
    def digest(self) -> str:
        """Digest of the list of cells, so that an index means the same cell everywhere."""
        return digest([cell.key for cell in self.cells])

    def needs(self, cell: Cell) -> tuple[Cell, ...]:
        """The cells whose results a cell reads."""
        return tuple(self[key] for key in cell.needs)

    def select(self, **wanted: Any) -> tuple[Cell, ...]:
        """Cells whose attributes are these: ``select(kind="audit", variant="main")``."""
        return tuple(
            cell
            for cell in self.cells
            if all(getattr(cell, name) == value for name, value in wanted.items())
        )

    def to_json(self) -> dict[str, Any]:
        """The plan as plain values."""
        return {"cells": [asdict(cell) for cell in self.cells], "notes": list(self.notes)}

    @classmethod
    def from_json(cls, content: Any) -> Plan:
        """The plan from plain values."""
        try:
            cells = tuple(
                Cell(**{**one, "needs": tuple(one["needs"]), "rankings": tuple(one["rankings"])})
                for one in content["cells"]
            )
            return cls(cells, tuple(content["notes"]))
        except (KeyError, TypeError) as error:
            raise FociError("plan.json", f"is no plan ({error})", "run foci study plan") from None


# Expand a study into its cells, each with the key of everything that decides its result.


_FORMAT = 1
"""Raised whenever the same key would mean another result."""

_INDIFFERENT = {"memory_gb", "profile", "recipe", "recipe_settings", "seeds", "fit_target"}


@dataclass(frozen=True)
class _Base:
    """One trained classifier: the cells around it share cohort, backbone, seed and fold."""

    study: Study
    cohort: str
    fold: int | None
    backbone: str
    seed: int
    data: str
    classes: tuple[str, ...]

    @property
    def entry(self) -> BackboneEntry:
        return self.study.backbones[self.backbone]

    def cell(self, **own: Any) -> Cell:
        shared = {
            "cohort": self.cohort, "backbone": self.backbone, "seed": self.seed,
            "fold": self.fold, "data": self.data, "variant": MAIN, "n_cap": self.study.n_cap,
            "needs": (), "key": "",
        }  # fmt: skip
        return Cell(**{**shared, **own})

    def settings(self, cell: Cell) -> AuditSettings:
        return audit_settings(self.study, cell)


def audit_settings(study: Study, cell: Cell) -> AuditSettings:
    """Settings of the audit of a cell, and of the fit that it takes its selector from."""
    changes: dict[str, Any] = {"recipe": cell.recipe, "recipe_settings": cell.recipe_settings}
    if cell.rankings:
        changes["rankings"] = cell.rankings
    return study.settings(cell.seed, **changes)


def make_plan(study: Study) -> Plan:
    """List the cells of a study; tables are read and files are stamped, no feature is read.

    Raises:
        FociError: If a cohort cannot be read, or a setting fits no recipe or backbone.
    """
    cells: list[Cell] = []
    notes: list[str] = []
    bases = [base for name in study.cohorts for base in _bases(study, name, notes)]
    for base in bases:
        cells += _around(base)
    cells += _costs(study, cells)
    unique = list({(cell.name, cell.key): cell for cell in cells}.values())
    return Plan(tuple(sorted(unique, key=lambda c: KINDS.index(c.kind))), tuple(notes))


def _bases(study: Study, name: str, notes: list[str]) -> Iterator[_Base]:
    entry = study.cohorts[name]
    for fold in folds(entry):
        cohort = read_cohort(entry, fold, study.n_cap)
        notes += [f"{name}: {note}" for note in cohort.notes if f"{name}: {note}" not in notes]
        data = data_digest(cohort, entry.split_seed)
        for backbone in study.backbones:
            for seed in study.seeds:
                yield _Base(study, name, fold, backbone, seed, data, cohort.classes)


def _around(base: _Base) -> list[Cell]:
    """The cells of one trained classifier, the training first."""
    study = base.study
    train = _train(base)
    settings = study.settings(base.seed)
    main = _fit(base, train, MAIN, settings.recipe, settings.recipe_settings)
    fitted = [main] if settings.fits_selectors else []
    cells = [train, *fitted, _audit(base, main, settings.rankings)]
    for key, sweep in study.sweeps.items():
        if _covers(sweep, base):
            cells += _swept(base, key, sweep, train, main)
    return cells


def _covers(sweep: Sweep, base: _Base) -> bool:
    chosen = (
        (sweep.cohorts, base.cohort),
        (sweep.backbones, base.backbone),
        (sweep.seeds, base.seed),
    )
    return all(names is None or name in names for names, name in chosen)


def _swept(base: _Base, key: str, sweep: Sweep, train: Cell, main: Cell) -> Iterator[Cell]:
    """The cells that a sweep adds around one trained classifier."""
    common = base.study.audit.get("recipe_settings", {})
    if sweep.epochs is not None:
        joint = base.cell(
            kind="joint", needs=(train.key,), epochs=sweep.epochs,
            recipe=main.recipe, recipe_settings=main.recipe_settings,
        )  # fmt: skip
        yield replace(joint, key=_key(joint, _selector(base, joint), sweep.epochs))
        return
    if sweep.values:
        for cap in sweep.values:
            fit = main
            if sweep.refit:
                fit = _fit(base, train, N_CAP, main.recipe, common, n_cap=cap)
                yield fit
            offered = base.study.settings(base.seed).rankings
            rankings = tuple(r for r in ("native", "selector") if r in offered)
            audit = _audit(base, fit, rankings, variant=N_CAP, n_cap=cap)
            yield audit
        return
    variants = [(name, name, common) for name in sweep.recipes]
    for setting, values in sweep.vary.items():
        leaf = setting.rpartition(".")[2]
        chosen = sweep.recipe or main.recipe
        variants += [(f"{key}.{leaf}={v}", chosen, {**common, setting: v}) for v in values]
    for variant, name, changes in variants:
        fit = _fit(base, train, variant, name, changes)
        yield fit
        if sweep.audit:
            yield _audit(base, fit, ("selector",), variant=variant)


def _train(base: _Base) -> Cell:
    entry, study = base.entry, base.study
    name = entry.architecture or base.backbone
    given = entry.models.get(base.cohort, {}).get(base.seed)
    if given is not None:
        path = Path(str(given).replace("{fold}", str(base.fold)))
        cell = base.cell(kind="train", model=str(path))
        given_by = _model_digests(path), entry.model_options, list(base.classes)
        return replace(cell, key=_key(cell, *given_by))
    plan = training_settings(study, base.cohort, base.backbone, base.classes, base.seed)
    widths = checked_widths(name, entry.preset, entry.widths)
    cell = base.cell(kind="train")
    own = (name, entry.preset, widths, plan.model_dump(), list(base.classes))
    return replace(cell, key=_key(cell, *own))


def training_settings(
    study: Study, cohort: str, backbone: str, classes: tuple[str, ...], seed: int
) -> TrainingRecipe:
    """The training recipe of a backbone on a cohort with these classes."""
    entry = study.backbones[backbone]
    given = {**entry.training, "seed": seed}
    objective = study.cohorts[cohort].objective.get(backbone, {})
    given["objective"] = {**given.get("objective", {}), **objective}
    return training_recipe(entry.architecture or backbone, classes, given)[0]


def _fit(
    base: _Base,
    train: Cell,
    variant: str,
    name: str,
    changes: dict[str, Any],
    n_cap: int | None = None,
) -> Cell:
    cell = base.cell(
        kind="fit", variant=variant, needs=(train.key,), recipe=name, recipe_settings=changes,
        n_cap=n_cap or base.study.n_cap,
    )  # fmt: skip
    return replace(cell, key=_key(cell, _selector(base, cell)))


def _selector(base: _Base, cell: Cell) -> list[Any]:
    """What decides a selector, besides the classifier, the slides and the seed."""
    plan = vary(recipe(cell.recipe), cell.recipe_settings)
    settings = base.settings(cell)
    own = {k: v for k, v in plan.hash_fields().items() if k not in ("name", "note")}
    return [own, settings.fitted_for, settings.choose_by]


def _audit(
    base: _Base, fit: Cell, rankings: tuple[str, ...], variant: str = MAIN, n_cap: int | None = None
) -> Cell:
    needs = (*fit.needs, fit.key) if "selector" in rankings else fit.needs
    cell = base.cell(
        kind="audit", variant=variant, needs=needs, rankings=rankings, recipe=fit.recipe,
        recipe_settings=fit.recipe_settings, n_cap=n_cap or base.study.n_cap,
    )  # fmt: skip
    settings = base.settings(cell)
    own = settings.model_dump(mode="json", exclude=_INDIFFERENT)
    return replace(cell, key=_key(cell, own, settings.reveals_every_count))


def _costs(study: Study, cells: list[Cell]) -> Iterator[Cell]:
    """One measurement of cost per backbone: first seed and fold of one cohort."""
    plan = study.efficiency
    if plan is None:
        return
    cohort = plan.cohort or next(iter(study.cohorts))
    for backbone in study.backbones:
        audit = next(
            c for c in cells
            if (c.kind, c.cohort, c.backbone, c.variant) == ("audit", cohort, backbone, MAIN)
        )  # fmt: skip
        cell = replace(audit, kind="cost")
        settings = [plan.slides, plan.repeats, plan.device, study.settings(cell.seed).k_max]
        yield replace(cell, key=_key(cell, *settings))


def _key(cell: Cell, *decided_by: Any) -> str:
    """Digest of what decides a cell; results that it reads are known by their own keys."""
    own = [_FORMAT, cell.kind, cell.data, cell.n_cap, cell.seed, list(cell.needs), *decided_by]
    return digest(own)[:32]


def _model_digests(path: Path) -> list[str]:
    files = [path / RECORD, path / WEIGHTS] if path.is_dir() else [path]
    for file in files:
        if not file.is_file():
            raise FociError(file, "does not exist", "check the paths under models")
    return [file_digest(file) for file in files]
