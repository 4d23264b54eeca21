"""Run the demo: train three classifiers, audit them, compare with the planted tiles.

Or the paper's study in miniature.
"""

from __future__ import annotations

import logging
import time
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from foci.audits import StoredAudit
from foci.audits.outputs import outcome_split_scores
from foci.audits.run import run as run_audit
from foci.audits.settings import AuditSettings
from foci.audits.sources import Sources, open_sources
from foci.audits.truth import attach, read_truth
from foci.backbones import load
from foci.backbones.saved import RECORD
from foci.backbones.training import TrainingRecipe, training_recipe
from foci.backbones.training.run import STATE, train_into
from foci.bags import Cohort
from foci.bags.importers import Kind, Outcomes
from foci.demo.cohort import COLUMNS, NOTES
from foci.demo.folder import COHORT, FEATURES, TRUTH, make, truth_of
from foci.demo.painting import SLIDES
from foci.engines.base import Engine, InProcess, Outcome, Task, Work, run_tasks
from foci.engines.local import Processes, available_cores
from foci.errors import FociError
from foci.files.atomic import write_whole
from foci.outputs import SURVIVAL, Output
from foci.progress import showing
from foci.reports import write_comparison, write_report
from foci.slides.find import find_images, match_images, write_thumbnails
from foci.studies.plan import STUDY, StudyFolder
from foci.studies.run import CellWork, StudyProgress, Tally, run_plan

_LOG = logging.getLogger(__name__)

MODELS_FOLDER, AUDITS_FOLDER, COMPARISON = "models", "audits", "comparison.html"

NOTE = (
    "Synthetic slides: no patient, tissue or image is behind them. Each slide's class is carried "
    "only by its planted witnesses, one connected cluster of 2 to 6 % of the tiles inside the "
    "tumour; distractors, artefacts and site shifts were planted too."
)
MARKED = "The planted witnesses: the only tiles that carry the slide's class."


@dataclass(frozen=True)
class DemoModel:
    """A classifier of the demo, small enough for two cores: what replaces the preset ``paper``."""

    name: str
    widths: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)


MODELS = (
    DemoModel(
        "transmil",
        {"d": 64, "heads": 4, "depth": 2, "hidden": 128, "head_hidden": 64, "dropout": 0.2},
        {"weight_decay": 0.1, "lr": 5e-4, "epochs": 10},
    ),
    DemoModel("abmil"),
    DemoModel("acmil", {"d": 128}),
)


TRAINING: dict[Output, dict[str, Any]] = {
    "cox": {"epochs": 40},
    "hazards": {"epochs": 20},
    "regression": {"epochs": 20},
    "multilabel": {"epochs": 30, "lr": 1e-3},
}
"""What replaces the training preset of ABMIL, whose head is linear here: minima are proven."""
WIDTHS = {"d": 64, "hidden": 32}

SETTINGS = AuditSettings(
    seeds=(0,),
    random_orders=4,
    recipe_settings={"schedule.epochs": 10, "schedule.warmup": 2},
)
"""One selector, and fewer epochs and orders than an audit's default, to keep the demo short."""


@dataclass(frozen=True)
class DemoResult:
    """What the demo made: its folder, one audit per classifier, the page that compares them."""

    folder: Path
    audits: tuple[StoredAudit, ...]
    comparison: Path


def run_demo(
    out: str | Path,
    *,
    seed: int = 0,
    slides: int = 240,
    classes: int = 2,
    settings: AuditSettings = SETTINGS,
    workers: int | None = None,
) -> DemoResult:
    """Make the embedded cohort, train three classifiers, audit each, and compare them.

    Results of an earlier run of the same demo are kept. Each worker is a process of one thread:
    None is one per core, 1 is this process alone.
    """
    folder = make(out, seed=seed, slides=slides, classes=classes)
    models = {model.name: model for model in MODELS}
    workers = min(workers or available_cores(), len(models))
    how = "one after the other" if workers == 1 else f"{workers} at a time"
    _LOG.info("training and auditing %s; %s", ", ".join(models), how)
    started = time.monotonic()
    with _engine(_Models(models, folder.resolve(), seed, settings), workers) as engine:
        for done in run_tasks([Task(name) for name in models], engine):
            seconds = time.monotonic() - started
            _LOG.info("%s: trained and audited (%.0f s)", done.key, seconds)
    audits = tuple(StoredAudit.load(folder / AUDITS_FOLDER / model.name) for model in MODELS)
    return DemoResult(folder, audits, write_comparison(audits, folder / COMPARISON))


def run_outcome_demo(
    out: str | Path,
    output: Output,
    *,
    seed: int = 0,
    slides: int = 240,
    settings: AuditSettings = AuditSettings(random_orders=4),  # noqa: B008  # frozen
) -> tuple[StoredAudit, ...]:
    """Make a cohort of a risk, a number or three labels, train ABMIL on it, and audit it.

    One audit, or one per label. Results of an earlier run of the same demo are kept.
    """
    folder = make(out, seed=seed, slides=slides, output=output)
    columns = COLUMNS[output]
    kind: Kind = "value" if output == "regression" else "labels"
    read = Outcomes("survival" if output in SURVIVAL else kind, columns)
    cohort = Cohort.read(folder / FEATURES, folder / COHORT, keep=1000, outcomes=read)
    trained = folder / MODELS_FOLDER / "abmil"
    if not (trained / RECORD).exists() or (trained / STATE).exists():
        recipe, _ = training_recipe("abmil", (), {"seed": seed, **TRAINING[output]}, output)
        train_into(
            trained, "abmil", cohort, recipe,
            preset="official", widths=WIDTHS, output=output, score=outcome_split_scores,
        )  # fmt: skip
    audits = []
    for label in columns if output == "multilabel" else (None,):
        name = "abmil" if label is None else f"abmil-{label}"
        sources = replace(open_sources(trained, cohort), name=name, notes=(NOTES[output],))
        own = settings.model_copy(update={"target_class": label})
        audit = run_audit(sources, own, folder / AUDITS_FOLDER / name)
        marked = TRUTH if label is None else truth_of(label)
        audits.append(attach(audit, read_truth(folder / marked, what=NOTES[output])))
        write_report(audits[-1])
    return tuple(audits)


@dataclass(frozen=True)
class _Models:
    """Trains and audits the demo's classifiers, in whatever process it is sent to."""

    models: dict[str, DemoModel]
    folder: Path
    seed: int
    settings: AuditSettings

    @showing(False)
    def __call__(self, task: Task) -> Outcome:
        """One classifier, from the cohort to its report."""
        model, folder = self.models[task.key], self.folder
        cohort = Cohort.read(folder / FEATURES, folder / COHORT, keep=1000)
        trained = folder / MODELS_FOLDER / model.name
        if not (trained / RECORD).exists() or (trained / STATE).exists():
            recipe = TrainingRecipe(seed=self.seed, **model.training)
            train_into(trained, model.name, cohort, recipe, widths=model.widths)
        sources = Sources(load(trained), cohort, model.name, notes=(NOTE,))
        audit = run_audit(sources, self.settings, folder / AUDITS_FOLDER / model.name)
        if (folder / SLIDES).is_dir():
            ids = [(slide.slide_id, None) for slide in audit.slides]
            write_thumbnails(match_images(ids, find_images(folder / SLIDES)), audit.folder)
        write_report(attach(audit, read_truth(folder / TRUTH, what=MARKED)))
        return Outcome(model.name)


def _engine(work: Work, workers: int) -> AbstractContextManager[Engine]:
    """So many processes of one thread; 1 is this process alone."""
    return Processes(work, workers) if workers > 1 else nullcontext(InProcess(work))


# The paper's matrix in miniature: seven backbones, two tasks, two seeds, on synthetic slides

SLIDES_OF_A_STUDY = 100
TASKS = {"two-types": 2, "three-types": 3}
"""Cohorts of the study, and their classes."""

_HEADER = """\
# The paper's study in miniature, on synthetic slides: narrow classifiers, few epochs, two seeds.
# It shows what a study is; nothing about the paper follows from its numbers.
"""

_NARROW: dict[str, dict[str, Any]] = {
    "transmil": {"d": 32, "heads": 4, "depth": 2, "hidden": 64, "head_hidden": 32, "dropout": 0.2},
    "acmil": {"d": 64, "hidden": 32},
    "abmil": {"d": 64, "hidden": 32, "head_hidden": 32},
    "clam-sb": {"d": 64, "hidden": 32, "head_hidden": 32},
    "attrimil": {"d": 64, "scorer_hidden": 32},
    "asmil": {"d": 64, "hidden": 32, "head_hidden": 32},
    "mhim-mil": {"d": 64, "hidden": 32, "head_hidden": 32},
}
_TRAINING: dict[str, dict[str, Any]] = {"transmil": {"lr": 1e-3, "weight_decay": 0.1}}


def miniature() -> dict[str, Any]:
    """Content of the demo's ``study.yaml``; cohorts lie beside it."""
    swept = {"backbones": ["transmil"], "cohorts": ["two-types"]}
    return {
        "format": 1,
        "name": "miniature",
        "profile": "paper",
        "seeds": [0, 1],
        "cohorts": {
            name: {"features": f"{name}/{FEATURES}", "labels": f"{name}/{COHORT}"} for name in TASKS
        },
        "backbones": {
            name: {
                "widths": widths,
                "training": {"epochs": 10, "lr": 5e-4, **_TRAINING.get(name, {})},
            }
            for name, widths in _NARROW.items()
        },
        "audit": {
            "recipe_settings": {"schedule.epochs": 6, "schedule.warmup": 1, "width": 64},
            "random_orders": 4,
            "n_boot": 200,
        },
        "sweeps": {
            "adaptive": {"recipes": ["paper-adaptive"], "backbones": ["transmil"]},
            "gate": {"recipes": ["paper-soft"], **swept},
            "losses": {"recipes": ["no-suff", "no-excl", "no-contig"], **swept},
            "freeze": {"recipes": ["freeze-only"], **swept},
            "n_cap": {"values": [64, 128], "backbones": ["transmil"], "cohorts": ["two-types"]},
            "joint": {"epochs": 2, "seeds": [0], **swept},
        },
        "efficiency": {"cohort": "two-types", "slides": 5, "repeats": 5},
    }


def make_study(out: str | Path, *, slides: int = SLIDES_OF_A_STUDY, seed: int = 0) -> StudyFolder:
    """Make the cohorts of both tasks, with so many slides each, and ``study.yaml`` beside them."""
    folder = Path(out)
    text = _HEADER + yaml.safe_dump(miniature(), sort_keys=False)
    path = folder / STUDY
    if path.exists() and path.read_text(encoding="utf-8") != text:
        raise FociError(folder, "holds another study", "choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for name, classes in TASKS.items():
        make(folder / name, seed=seed, slides=slides, classes=classes)
    write_whole(path, text)
    return StudyFolder(folder)


def run_miniature(folder: StudyFolder, *, workers: int | None = None) -> Tally:
    """Run the cells of the miniature study that are not done, so many at the same time.

    None is one per core.
    """
    workers = workers or available_cores()
    plan = folder.new_plan()
    with ExitStack() as stack:
        engine = stack.enter_context(_engine(CellWork.of(folder, plan), workers))
        report = stack.enter_context(StudyProgress(engine.slots))
        return run_plan(folder, plan, engine, report=report)
