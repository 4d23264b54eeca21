"""The file ``study.yaml``: its blocks, the defaults of its profile, its cohorts, and a template."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveInt,
    field_validator,
    model_validator,
)

from foci.audits.settings import FOCI, KAPPAS, PAPER, AuditSettings, Seed, Share, read_yaml
from foci.backbones import available
from foci.bags import N_CAP, Cohort
from foci.bags.cohort import CohortOptions, stamps
from foci.bags.splits import folds_of
from foci.configuration import configure
from foci.errors import FociError
from foci.files.hashes import digest
from foci.selectors import recipe

BACKBONES: Mapping[str, str] = {
    "transmil": "Soft-aggregation/Transformer",
    "acmil": "Soft-aggregation/Multi-branch attention",
    "abmil": "Attention pooling/Attention pool",
    "clam-sb": "Attention pooling/Attention pool",
    "attrimil": "Attention pooling/Attribution-based",
    "asmil": "Hard selection/Hard selection",
    "mhim-mil": "Hard selection/Hard instance mining",
}
"""The seven backbones of the paper, in the order of its SHI table, and their families."""

SEEDS: Mapping[str, tuple[int, ...]] = {PAPER: (42, 43, 44), FOCI: (0, 1, 2)}
"""Seeds by profile."""

_SWEPT = "transmil"
_GIVEN_BY_STUDY = ("profile", "seeds", "kappas", "map")
"""Settings of an audit that the study gives itself."""


def _check_known(names: Iterable[Any], known: Iterable[Any], what: str) -> None:
    """Refuse names that are unknown, with the nearest known one.

    >>> _check_known(["recips"], ["recipes", "vary"], "is not a setting of a sweep")
    Traceback (most recent call last):
    foci.errors.FociError: recips: is not a setting of a sweep; did you mean 'recipes'?
    """
    listed = [*known]
    for name in names:
        if name not in listed:
            near = difflib.get_close_matches(str(name), map(str, listed), n=1)
            fix = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(map(str, listed))}"
            raise FociError(str(name), what, fix)


class _Block(BaseModel):
    """A block of ``study.yaml``; a name that it does not have is refused with the nearest."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    block: ClassVar[str]

    @model_validator(mode="before")
    @classmethod
    def _known(cls, values: Any) -> Any:
        names = values if isinstance(values, dict) else ()
        _check_known(names, cls.model_fields, f"is not a setting of {cls.block}")
        return values


class CohortEntry(CohortOptions, _Block):
    """A cohort: where its slides are, as for ``foci audit``, and what is particular to it.

    Attributes:
        folds: Folds of a ``splits/`` folder: a list, or ``"all"``, which is also what None means
            where the folder has several. Their results are pooled as those of seeds are.
        split_seed: Seed of the patient split, if no table gives one; the same for all seeds.
        objective: Settings of a backbone's own objective on this cohort, by backbone.
    """

    block = "a cohort"

    folds: tuple[NonNegativeInt, ...] | Literal["all"] | None = None
    split_seed: NonNegativeInt = 0
    objective: dict[str, dict[str, Any]] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _no_cap(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("n_cap") is not None:
            raise FociError("n_cap", "is given for one cohort", "give it once, for the study")
        return values


class BackboneEntry(_Block):
    """A classifier to train, or checkpoints that are ready.

    Attributes:
        architecture: One of :func:`foci.backbones.available`; None for the entry's own name.
        family: Shown in tables, ``group/kind``.
        widths: Constructor arguments that replace the preset's.
        training: Hyperparameters that replace those of its training preset.
        models: Ready-made checkpoints by cohort and seed; ``{fold}`` in a path is the fold.
        model_options: What the tensors of a checkpoint do not show.
    """

    block = "a backbone"

    architecture: str | None = None
    family: str = ""
    preset: str = "paper"
    widths: dict[str, Any] = {}
    training: dict[str, Any] = {}
    models: dict[str, dict[Seed, Path]] = {}
    model_options: dict[str, Any] = {}

    @field_validator("training")
    @classmethod
    def _no_seed(cls, training: dict[str, Any]) -> dict[str, Any]:
        if "seed" in training:
            raise FociError("training.seed", "is given", "give the seeds of the study instead")
        return training


class Adaptive(BaseModel):
    r"""The adaptive count :math:`K_s = \max(K_\mathrm{min}, \lfloor \alpha N_s \rfloor)`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    alpha: Share = 0.03
    k_min: PositiveInt = 16


class ReadBlock(_Block):
    """At what thresholds and counts tables are read from stored curves.

    Attributes:
        kappas: Confidences; probabilities close to one of them are computed in float64.
        budgets: Largest reveal counts.
        selected_k: Counts of the selected-only tables, beside the adaptive one.
    """

    block = "read"

    kappas: tuple[Share, ...] = KAPPAS
    budgets: tuple[PositiveInt, ...] = (32, 256)
    selected_k: tuple[PositiveInt, ...] = (8, 16, 32, 64, 128)
    adaptive: Adaptive = Adaptive()


class Sweep(_Block):
    """Variants of the main audits: other recipes, other settings of one, other tile caps, or joint.

    Exactly one of ``recipes``, ``vary``, ``values`` and ``epochs`` is given.

    Attributes:
        recipes: Names of selector recipes; each is a variant with its own fit.
        vary: Values of the recipe's settings by dotted name; each value is a variant.
        recipe: The recipe that ``vary`` changes; None for the study's.
        values: Other tile caps (``n_cap``) for the audit of the main selector.
        refit: Whether the selector is fitted with the other cap, too.
        epochs: Epochs of joint training of selector and classifier.
        audit: Whether the variants are audited, or only fitted.
        cohorts: Where; None for all, as for backbones and seeds.
    """

    block = "a sweep"

    recipes: tuple[str, ...] = ()
    vary: dict[str, tuple[Any, ...]] = {}
    recipe: str | None = None
    values: tuple[PositiveInt, ...] = ()
    refit: bool = False
    epochs: PositiveInt | None = None
    audit: bool = True
    cohorts: tuple[str, ...] | None = None
    backbones: tuple[str, ...] | None = None
    seeds: tuple[Seed, ...] | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Sweep:
        given = [n for n in ("recipes", "vary", "values", "epochs") if getattr(self, n)]
        if len(given) != 1:
            what = f"gives {' and '.join(given) or 'none of recipes, vary, values and epochs'}"
            raise FociError("sweep", what, "give exactly one of them")
        return self

    def covers(self, cohort: str, backbone: str, seed: int) -> bool:
        """Whether the sweep varies this classifier."""
        chosen = ((self.cohorts, cohort), (self.backbones, backbone), (self.seeds, seed))
        return all(names is None or name in names for names, name in chosen)


class Efficiency(_Block):
    """What the cost of every backbone is measured on: so many test slides of one cohort.

    Attributes:
        cohort: None for the first.
        repeats: Repetitions; the median counts.
        device: ``"auto"`` is a GPU if there is one.
    """

    block = "efficiency"

    cohort: str | None = None
    slides: PositiveInt = 20
    repeats: PositiveInt = 9
    device: str = "auto"


class Overlays(_Block):
    """Slides of the figure that shows the first tiles of several rankings, ``backbone/ranking``."""

    block = "overlays"

    cohort: str
    slides: tuple[str, ...]
    top: PositiveInt = 32
    rankings: Annotated[tuple[str, ...], Field(min_length=1)]


class Study(_Block):
    """One study: cohorts x backbones x seeds, sweeps around them, and how they are read.

    Attributes:
        profile: ``"paper"`` or ``"foci"``: the defaults of everything below.
        seeds: Each trains every backbone once, and fits its selector with the same seed.
        std: Divides by n (``"population"``, what the paper prints) or n - 1 (``"sample"``).
        n_cap: Most tiles per bag.
        audit: Settings of all audits: those of :class:`foci.audits.settings.AuditSettings`.
        efficiency: What cost is measured on; None for no measurement.
        published: Whether the paper's numbers stand beside one's own.
    """

    block = "a study"

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

    @model_validator(mode="after")
    def _names_exist(self) -> Study:
        for where, entries in (("cohorts", self.cohorts), ("backbones", self.backbones)):
            if not entries:
                raise FociError(where, "is empty", "give at least one")
        if len({*self.seeds}) != len(self.seeds) or not self.seeds:
            raise FociError("seeds", f"cannot be {list(self.seeds)}", "give each once")

        def check(field: str, names: Iterable[Any] | None) -> None:
            known = getattr(self, field)
            _check_known(names or (), known, f"is not among the {field} of the study")

        for key, entry in self.backbones.items():
            architecture = entry.architecture or key
            _check_known([architecture], available(), "is not among the known backbones")
            check("cohorts", entry.models)
            for seeds in entry.models.values():
                check("seeds", seeds)
        for cohort in self.cohorts.values():
            check("backbones", cohort.objective)
        for sweep in self.sweeps.values():
            for field in ("cohorts", "backbones", "seeds"):
                check(field, getattr(sweep, field))
        if self.efficiency is not None and self.efficiency.cohort is not None:
            check("cohorts", [self.efficiency.cohort])
        settings = [name for name in AuditSettings.model_fields if name not in _GIVEN_BY_STUDY]
        _check_known(self.audit, settings, "is not a setting of audit")
        for sweep in self.sweeps.values():
            for name in (*sweep.recipes, *filter(None, [sweep.recipe])):
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
        study = configure(Study, _with_profile(read_yaml(path)))
    except FociError as error:
        where = error.where if str(path) in error.where else f"{path}, {error.where}"
        raise FociError(where, error.what, error.fix) from None
    folder = path.resolve().parent
    cohorts, backbones = {}, {}
    for name, cohort in study.cohorts.items():
        paths = {field: folder / value for field, value in cohort if isinstance(value, Path)}
        cohorts[name] = cohort.model_copy(update=paths)
    for name, entry in study.backbones.items():
        models = {
            cohort: {seed: folder / model for seed, model in own.items()}
            for cohort, own in entry.models.items()
        }
        backbones[name] = entry.model_copy(update={"models": models})
    return study.model_copy(update={"cohorts": cohorts, "backbones": backbones})


def _with_profile(given: Mapping[str, Any]) -> dict[str, Any]:
    """Values of ``study.yaml`` with those of its profile where nothing was given.

    ``audit`` and ``read`` are merged setting by setting. ``backbones``, ``sweeps`` and
    ``efficiency`` are replaced as a whole: an empty block means none.
    """
    profile = given.get("profile", PAPER)
    if profile not in (FOCI, PAPER):
        raise FociError("profile", f"cannot be {profile!r}", f"choose {PAPER} or {FOCI}")
    for block in ("cohorts", "backbones", "audit", "read", "sweeps", "efficiency"):
        if not isinstance(given.get(block) or {}, dict):
            raise FociError(block, f"cannot be {given[block]!r}", "give names and their settings")
    paper = profile == PAPER
    seeds = given.get("seeds") or SEEDS[profile]
    backbones = given.get("backbones") or dict.fromkeys(BACKBONES)
    sweeps = _paper_sweeps(list(given.get("cohorts") or ()), backbones, seeds) if paper else {}
    audit = {"rankings": ["native", "selector", "random", "evidence"]} if paper else {}
    return {
        "profile": profile,
        "seeds": seeds,
        "std": "population" if paper else "sample",
        "efficiency": {},
        "published": paper,
        **given,
        "audit": {**audit, **(given.get("audit") or {})},
        "read": given.get("read") or {},
        "sweeps": given.get("sweeps", sweeps) or {},
        "backbones": {
            key: {"family": BACKBONES.get(key, ""), **(entry or {})}
            if isinstance(entry, dict | None)
            else entry
            for key, entry in backbones.items()
        },
    }


def _paper_sweeps(
    cohorts: Sequence[str], backbones: Iterable[str], seeds: Sequence[int]
) -> dict[str, Any]:
    """The paper's ablations: of TransMIL, most of them on the first cohort."""
    if _SWEPT not in backbones:
        return {}
    one = {"backbones": [_SWEPT]}
    here = {**one, "cohorts": list(cohorts[:1])}
    return {
        "adaptive": {"recipes": ["paper-adaptive"], **one},
        "alpha": {
            "recipe": "paper-adaptive",
            "vary": {"budget.alpha": [0.01, 0.05]},
            "seeds": list(seeds[:1]),
            "audit": False,
            **here,
        },
        "gate": {"recipes": ["paper-soft"], **here},
        "losses": {"recipes": ["no-suff", "no-excl", "no-contig"], **here},
        "freeze": {"recipes": ["freeze-only"], "seeds": list(seeds[:2]), **here},
        "n_cap": {"values": [256, 512, 2048], "refit": False, **one},
        "joint": {"epochs": 2, "seeds": list(seeds[:1]), **here},
    }


def folds(entry: CohortEntry) -> tuple[int | None, ...]:
    """The folds of a cohort: those that were asked for, or all of a ``splits/`` folder.

    ``(None,)`` for a cohort without folds, and where one fold was chosen with ``fold``.
    """
    if entry.splits is None or not entry.splits.is_dir() or entry.fold is not None:
        if entry.folds is not None:
            what, fix = "needs a folder of splits", "give it as splits, without fold"
            raise FociError("folds", what, fix)
        return (None,)
    known = tuple(folds_of(entry.splits))
    chosen = known if entry.folds is None or entry.folds == "all" else entry.folds
    missing = [fold for fold in chosen if fold not in known]
    if missing:
        what = f"has no fold {missing[0]} (it has {', '.join(map(str, known))})"
        raise FociError(entry.splits, what, "choose others with folds")
    return chosen if len(known) > 1 else (None,)


def read_cohort(entry: CohortEntry, fold: int | None, n_cap: int) -> Cohort:
    """Read the table of a cohort, or of one of its folds; no feature file is read."""
    chosen = entry if fold is None else entry.model_copy(update={"fold": fold})
    return chosen.read(n_cap=n_cap)


def data_digest(cohort: Cohort, split_seed: int) -> str:
    """Digest of a cohort's rows, and of its feature files by name, size and time of change.

    Tile cap and classes are left out: cells and models name their own.
    """
    store = cohort.store
    rows = [[s.slide_id, s.case_id, s.label, s.split] for s in cohort]
    skipped = [[s.slide_id, s.reason] for s in cohort.skipped]
    return digest([rows, skipped, stamps(cohort), store.layout, store.mpp, split_seed])


_HEAD = """\
# A study: cohorts x backbones x seeds. Paths start from this file. Next:
#   foci study plan .     which cells there are, and how long they will take
#   foci study run .      run them; give the same command again to resume
#   foci study tables .   tables, figures and study.html from what is there
format: 1
name: {name}
profile: {profile}        # fills in everything that is not given here; {other} is the other one
seeds: [{seeds}]          # each trains every backbone once and fits its selector
n_cap: 1024               # most tiles per bag

cohorts:                  # one line each; the options of foci audit
  mine:
    features: features    # folder of feature files, in any layout FOCI knows
    labels: labels.csv    # slide_id, case_id, label, split
    # classes: [LUAD, LUSC]
    # splits: splits      # CLAM's folder: all folds of it are run and pooled
    # objective: {{clam-sb: {{subtyping: true}}}}

# backbones:              # instead of the paper's seven
#   abmil: {{training: {{epochs: 20, lr: 2e-4}}}}
#   clam-sb: {{}}
#   transmil: {{widths: {{d: 128}}}}
#   mine: {{architecture: abmil, models: {{mine: {{{seed}: checkpoint.pt}}}}}}
"""

_PAPER = """
# audit: {recipe: paper-ste, fit_target: label, kappa: 0.9, k_max: 256, random_orders: 10}
# read: {kappas: [0.7, 0.8, 0.9, 0.95], budgets: [32, 256], selected_k: [8, 16, 32, 64, 128]}
# sweeps:                 # instead of the paper's: {} for none
#   adaptive: {recipes: [paper-adaptive], backbones: [transmil]}
#   losses: {recipes: [no-suff, no-excl, no-contig], backbones: [transmil], cohorts: [mine]}
#   lambda: {vary: {weights.hinge: [0.5, 2.0]}, backbones: [transmil], cohorts: [mine]}
#   n_cap: {values: [256, 512, 2048], backbones: [transmil]}
#   joint: {epochs: 2, backbones: [transmil], cohorts: [mine]}
# efficiency: {cohort: mine, slides: 20, repeats: 9}     # null for no measurement
# overlays: {cohort: mine, slides: [ID], top: 32, rankings: [transmil/native, transmil/selector]}
# published: true         # the paper's numbers beside one's own
"""

_FOCI = """
# audit: {kappa: 0.9, k_max: 256, random_orders: 10}     # any setting of foci audit
# sweeps: {gate: {recipes: [paper-ste], backbones: [transmil]}}
# efficiency: {cohort: mine, slides: 20, repeats: 9}     # null for no measurement
"""


def template(name: str, profile: str = PAPER) -> str:
    """Text of a new, commented ``study.yaml`` for a profile, ``"paper"`` or ``"foci"``."""
    if profile not in (PAPER, FOCI):
        raise FociError("--profile", f"cannot be {profile!r}", f"choose {PAPER} or {FOCI}")
    other, rest = (FOCI, _PAPER) if profile == PAPER else (PAPER, _FOCI)
    seed, seeds = SEEDS[profile][0], ", ".join(map(str, SEEDS[profile]))
    return _HEAD.format(name=name, profile=profile, other=other, seeds=seeds, seed=seed) + rest
