"""Expand a study into its cells, each with the key of everything that decides its result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from foci.audits.settings import AuditSettings
from foci.backbones.saved import FACTS, WEIGHTS
from foci.backbones.training import TrainingRecipe, training_recipe
from foci.backbones.training.settings import checked_widths
from foci.errors import FociError
from foci.files.digest import digest, file_digest
from foci.selectors import recipe, vary
from foci.studies.plan.blocks import BackboneEntry, Sweep
from foci.studies.plan.cells import KINDS, MAIN, N_CAP, Cell, Plan
from foci.studies.plan.cohorts import data_digest, folds, read_cohort
from foci.studies.plan.study import Study

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
    own = {k: v for k, v in plan.decided_by().items() if k not in ("name", "note")}
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
    files = [path / FACTS, path / WEIGHTS] if path.is_dir() else [path]
    for file in files:
        if not file.is_file():
            raise FociError(file, "does not exist", "check the paths under models")
    return [file_digest(file) for file in files]
