"""A study on disk: its cells, the units of work, the plan that lists them, and their results."""

from __future__ import annotations

import json
import logging
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
from foci.files.atomic import write_whole
from foci.files.bounds import read_json
from foci.files.hashes import digest, file_digest, was_changed, with_own_hash
from foci.selectors import recipe, vary
from foci.studies.study import Study, Sweep, data_digest, folds, read_cohort, read_study

_LOG = logging.getLogger(__name__)

Kind = Literal["train", "fit", "audit", "joint", "cost"]
KINDS: tuple[Kind, ...] = ("train", "fit", "audit", "joint", "cost")
MAIN = "main"
"""The variant that everything else is compared with."""
N_CAP = "n_cap"
"""The variant with another tile cap than the study's."""

STUDY, PLAN = "study.yaml", "plan.json"
CELLS, WORK, RECORDS = "cells", "work", "records"


@dataclass(frozen=True)
class Cell:
    """One unit of work: a training, a fit, an audit, a joint control or a measurement of cost.

    Cells with the same cohort, backbone, variant and cap, and other seeds or folds, are replicates:
    tables pool them.

    Attributes:
        cohort: Name in ``study.yaml``, as is the backbone.
        seed: Of training and of the selector.
        variant: ``"main"``, the recipe of a sweep (``"no-suff"``), or the value that it varies:
            ``"lambda.hinge=0.5"`` for a sweep ``lambda`` that varies ``weights.hinge``;
            ``"n_cap"`` where only the tile cap differs.
        needs: Keys of the cells whose results it reads.
        key: Digest of everything that decides its result: the name of its folder.
        fold: Fold of a ``splits/`` folder; None for a cohort without folds.
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
        fold = "" if self.fold is None else f"fold-{self.fold}"
        variant = "" if self.kind in ("train", "cost") else self.variant
        if self.variant == N_CAP:
            variant = f"{N_CAP}={self.n_cap}"
        parts = (self.kind, self.cohort, fold, self.backbone, str(self.seed), variant)
        return "/".join(filter(None, parts))


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
            what = "is not a cell of this plan: study.yaml or a cohort has changed"
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


_FORMAT = 1
"""Raised whenever the same key would mean another result."""

_NOT_IN_KEY = {"memory_gb", "profile", "recipe", "recipe_settings", "seeds", "fit_target"}
"""Settings of an audit that change no number, or are in the key of the fit."""


def make_plan(study: Study) -> Plan:
    """List the cells of a study, each with the key of everything that decides its result.

    Tables are read and files are stamped; no feature is read.

    Raises:
        FociError: If a cohort cannot be read, or a setting fits no recipe or backbone.
    """
    cells: list[Cell] = []
    notes: list[str] = []
    for name, entry in study.cohorts.items():
        for fold in folds(entry):
            cohort = read_cohort(entry, fold, study.n_cap)
            notes += [f"{name}: {note}" for note in cohort.notes if f"{name}: {note}" not in notes]
            data = data_digest(cohort, entry.split_seed)
            for backbone in study.backbones:
                for seed in study.seeds:
                    one = _Classifier(study, name, fold, backbone, seed, data, cohort.classes)
                    cells += one.cells()
    cells += _costs(study, cells)
    unique = list({(cell.name, cell.key): cell for cell in cells}.values())
    return Plan(tuple(sorted(unique, key=lambda c: KINDS.index(c.kind))), tuple(notes))


def audit_settings(study: Study, cell: Cell) -> AuditSettings:
    """Settings of the audit of a cell, and of the fit that it takes its selector from."""
    rankings = {"rankings": cell.rankings} if cell.rankings else {}
    chosen = {"recipe": cell.recipe, "recipe_settings": cell.recipe_settings}
    return study.settings(cell.seed, **chosen, **rankings)


def training_settings(study: Study, cell: Cell, classes: tuple[str, ...]) -> TrainingRecipe:
    """The training recipe of a cell's backbone on its cohort, which has these classes."""
    entry = study.backbones[cell.backbone]
    objective = {
        **entry.training.get("objective", {}),
        **study.cohorts[cell.cohort].objective.get(cell.backbone, {}),
    }
    given = {**entry.training, "seed": cell.seed, "objective": objective}
    return training_recipe(entry.architecture or cell.backbone, classes, given)[0]


@dataclass(frozen=True)
class _Classifier:
    """Plans the cells around one trained classifier: they share cohort, backbone, seed and fold."""

    study: Study
    cohort: str
    fold: int | None
    backbone: str
    seed: int
    data: str
    classes: tuple[str, ...]

    def cells(self) -> Iterator[Cell]:
        """All of them; those that others need come first."""
        train, settings = self._train(), self.study.settings(self.seed)
        main = self._fit(train, MAIN, settings.recipe, settings.recipe_settings)
        yield train
        if settings.fits_selectors:
            yield main
        yield self._audit(main, settings.rankings)
        for name, sweep in self.study.sweeps.items():
            if not sweep.covers(self.cohort, self.backbone, self.seed):
                continue
            if sweep.epochs is not None:
                joint = replace(main, kind="joint", epochs=sweep.epochs)
                yield _with_key(joint, self._selector(joint), sweep.epochs)
            elif sweep.values:
                yield from self._tile_caps(sweep, train, main, settings.rankings)
            else:
                yield from self._recipes(name, sweep, train, main)

    def _tile_caps(
        self, sweep: Sweep, train: Cell, main: Cell, offered: tuple[str, ...]
    ) -> Iterator[Cell]:
        """Audits with other tile caps, of the main selector or of one fitted with the cap."""
        changes = self.study.audit.get("recipe_settings", {})
        rankings = tuple(r for r in ("native", "selector") if r in offered)
        for cap in sweep.values:
            fit = main
            if sweep.refit:
                fit = self._fit(train, N_CAP, main.recipe, changes, n_cap=cap)
                yield fit
            yield self._audit(fit, rankings, variant=N_CAP, n_cap=cap)

    def _recipes(self, name: str, sweep: Sweep, train: Cell, main: Cell) -> Iterator[Cell]:
        """Fits of other recipes, or of one with other settings, and their audits."""
        common = self.study.audit.get("recipe_settings", {})
        variants = [(recipe, recipe, common) for recipe in sweep.recipes]
        for setting, values in sweep.vary.items():
            leaf, chosen = setting.rpartition(".")[2], sweep.recipe or main.recipe
            variants += [(f"{name}.{leaf}={v}", chosen, {**common, setting: v}) for v in values]
        for variant, chosen, changes in variants:
            fit = self._fit(train, variant, chosen, changes)
            yield fit
            if sweep.audit:
                yield self._audit(fit, ("selector",), variant=variant)

    def _cell(self, kind: Kind, **own: Any) -> Cell:
        shared: dict[str, Any] = {
            "cohort": self.cohort, "backbone": self.backbone, "seed": self.seed,
            "fold": self.fold, "data": self.data, "variant": MAIN, "n_cap": self.study.n_cap,
            "needs": (), "key": "",
        }  # fmt: skip
        return Cell(kind, **{**shared, **own})

    def _train(self) -> Cell:
        entry = self.study.backbones[self.backbone]
        given = entry.models.get(self.cohort, {}).get(self.seed)
        if given is not None:
            path = Path(str(given).replace("{fold}", str(self.fold)))
            cell = self._cell("train", model=str(path))
            return _with_key(cell, _model_digests(path), entry.model_options, list(self.classes))
        cell, name = self._cell("train"), entry.architecture or self.backbone
        settings = training_settings(self.study, cell, self.classes).model_dump()
        widths = checked_widths(name, entry.preset, entry.widths)
        return _with_key(cell, name, entry.preset, widths, settings, list(self.classes))

    def _fit(
        self, train: Cell, variant: str, name: str, changes: dict[str, Any], **own: Any
    ) -> Cell:
        chosen = {"variant": variant, "recipe": name, "recipe_settings": changes}
        cell = self._cell("fit", needs=(train.key,), **chosen, **own)
        return _with_key(cell, self._selector(cell))

    def _selector(self, cell: Cell) -> list[Any]:
        """What decides a selector, besides the classifier, the slides and the seed."""
        plan = vary(recipe(cell.recipe), cell.recipe_settings)
        settings = audit_settings(self.study, cell)
        own = {k: v for k, v in plan.hash_fields().items() if k not in ("name", "note")}
        return [own, settings.fitted_for, settings.choose_by]

    def _audit(self, fit: Cell, rankings: tuple[str, ...], **own: Any) -> Cell:
        needs = (*fit.needs, fit.key) if "selector" in rankings else fit.needs
        chosen = {"recipe": fit.recipe, "recipe_settings": fit.recipe_settings}
        cell = self._cell("audit", needs=needs, rankings=rankings, **chosen, **own)
        settings = audit_settings(self.study, cell)
        fields = settings.model_dump(mode="json", exclude=_NOT_IN_KEY)
        return _with_key(cell, fields, settings.reveals_every_count)


def _costs(study: Study, cells: list[Cell]) -> Iterator[Cell]:
    """One measurement of cost per backbone: first seed and fold of one cohort."""
    plan = study.efficiency
    if plan is None:
        return
    cohort = plan.cohort or next(iter(study.cohorts))
    for backbone in study.backbones:
        wanted = {"kind": "audit", "cohort": cohort, "backbone": backbone, "variant": MAIN}
        audit = Plan(tuple(cells)).select(**wanted)[0]
        k_max = study.settings(audit.seed).k_max
        yield _with_key(replace(audit, kind="cost"), plan.slides, plan.repeats, plan.device, k_max)


def _with_key(cell: Cell, *hash_fields: Any) -> Cell:
    """The cell with the digest of what decides it; results that it reads have keys of their own."""
    own = [_FORMAT, cell.kind, cell.data, cell.n_cap, cell.seed, list(cell.needs), *hash_fields]
    return replace(cell, key=digest(own)[:32])


def _model_digests(path: Path) -> list[str]:
    files = [path / RECORD, path / WEIGHTS] if path.is_dir() else [path]
    for file in files:
        if not file.is_file():
            raise FociError(file, "does not exist", "check the paths under models")
    return [file_digest(file) for file in files]


class StudyFolder:
    """A study: what was asked for, its cells, and what they have left.

    ::

        study.yaml            what was asked for
        plan.json             its cells, as last planned
        cells/<key>/          result of a finished cell; appears whole, by rename
        work/<key>/           a cell that is being computed, or was stopped; safe to delete
        records/<key>.json    seconds and machine of a finished cell, or why it failed

    Args:
        path: The folder, or its ``study.yaml``.
    """

    def __init__(self, path: str | Path) -> None:
        given = Path(path)
        self.path = given.parent if given.name == STUDY and not given.is_dir() else given
        if not (self.path / STUDY).is_file():
            raise FociError(self.path, f"has no {STUDY}", "make one with foci study new")

    @cached_property
    def study(self) -> Study:
        """The content of ``study.yaml``, with its profile filled in and absolute paths."""
        return read_study(self.path / STUDY)

    def plan(self) -> Plan:
        """The cells as last planned for this ``study.yaml``; planned now if they never were.

        Reading results needs no features: this works where they are out of reach.
        """
        stored = read_if_whole(self.path / PLAN)
        if stored.get("study_sha256") != file_digest(self.path / STUDY) or was_changed(stored):
            if stored:
                _LOG.warning("%s or %s was changed since the study was planned", STUDY, PLAN)
            return self.new_plan()
        try:
            cells = tuple(
                Cell(**{**one, "needs": tuple(one["needs"]), "rankings": tuple(one["rankings"])})
                for one in stored["cells"]
            )
            return Plan(cells, tuple(stored["notes"]))
        except (KeyError, TypeError) as error:
            raise FociError(PLAN, f"is not a plan ({error})", "run foci study plan") from None

    def new_plan(self) -> Plan:
        """Plan the cells from the cohorts as they are now, and store the plan."""
        plan = make_plan(self.study)
        content = {"study_sha256": file_digest(self.path / STUDY), **asdict(plan)}
        write_whole(self.path / PLAN, json.dumps(with_own_hash(content), indent=1) + "\n")
        return plan

    def result(self, cell: Cell) -> Path | None:
        """Folder of a finished cell; None if it is not finished.

        * ``train``: a model folder, or the ready-made checkpoint, for :func:`foci.backbones.load`.
        * ``fit``: a selector folder, for :func:`foci.selectors.load`; the score of its best epoch
          on the validation slides is in ``selector.json``.
        * ``audit``: an audit folder, for :meth:`foci.Audit.load`. The audit of a variant has only
          the ranking that varies: native and random stand in the main audit.
        * ``joint``: ``result.json``, see :class:`foci.studies.cells.JointResult`.
        * ``cost``: ``result.json``, see :class:`foci.studies.cells.CostResult`.
        """
        if cell.model is not None:
            return Path(cell.model)
        folder = self.path / CELLS / cell.key
        return folder if folder.is_dir() else None

    def failure(self, cell: Cell) -> str | None:
        """Why a cell failed, in one line; None if it did not, or is finished by now."""
        error = self.record(cell.key).get("error")
        return None if error is None or self.result(cell) is not None else str(error)

    def blocked(self, cell: Cell) -> str | None:
        """Name of a failed cell that an unfinished cell needs; None where there is none."""
        if self.result(cell) is not None:
            return None
        for key in cell.needs:
            needed = self.record(key)
            if "error" in needed and not (self.path / CELLS / key).is_dir():
                return str(needed["cell"])
        return None

    def seconds(self, cell: Cell) -> float | None:
        """How long a finished cell took; None where that is not known."""
        seconds = self.record(cell.key).get("seconds")
        return float(seconds) if isinstance(seconds, int | float) else None

    def record(self, key: str) -> dict[str, Any]:
        """What was noted of a cell when it ended: seconds, threads, device, or the error."""
        return read_if_whole(self.path / RECORDS / f"{key}.json")

    def write_record(self, cell: Cell, **noted: Any) -> None:
        """Note how a cell ended."""
        path = self.path / RECORDS / f"{cell.key}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {"cell": cell.name, **noted}
        write_whole(path, json.dumps(content, indent=1) + "\n", durable=False)


def read_if_whole(path: Path) -> dict[str, Any]:
    """The values of a JSON file; none if it is missing or damaged."""
    try:
        stored = read_json(path)
    except (OSError, ValueError):
        return {}
    return stored if isinstance(stored, dict) else {}
