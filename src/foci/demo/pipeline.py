"""The whole way on the embedded cohort: train, audit, compare with what was planted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foci.audits import Audit
from foci.audits.run import run as run_audit
from foci.audits.settings import AuditSettings
from foci.audits.truth import attach, read_marks
from foci.backbones import Backbone, load
from foci.backbones.folder import FACTS
from foci.backbones.training import TrainingRecipe
from foci.backbones.training.loop import Progress
from foci.backbones.training.run import train_into
from foci.bags import Cohort
from foci.demo.folder import COHORT, FEATURES, TRUTH, make
from foci.reports import write_comparison, write_report

MODELS_FOLDER, AUDITS_FOLDER, COMPARISON = "models", "audits", "comparison.html"

NOTE = (
    "Synthetic slides: no patient, tissue or image is behind them. Each slide's class is carried "
    "only by its planted witnesses, one connected cluster of 2 to 6 % of the tiles inside the "
    "tumour; distractors, artefacts and site shifts were planted too."
)
MARKED = "The planted witnesses: the only tiles that carry the slide's class."


@dataclass(frozen=True)
class DemoModel:
    """A classifier of the demo, small enough for two cores.

    Attributes:
        name: Architecture, preset ``paper``.
        widths: What replaces the preset's widths.
        training: What replaces the training recipe's defaults.
    """

    name: str
    widths: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)


MODELS = (
    DemoModel(
        "transmil",
        {"d": 128, "heads": 4, "depth": 2, "hidden": 256, "head_hidden": 64, "dropout": 0.2},
        {"weight_decay": 0.1},
    ),
    DemoModel("abmil"),
    DemoModel("acmil", {"d": 128}),
)


@dataclass(frozen=True)
class DemoResult:
    """What the demo made.

    Attributes:
        folder: The demo folder.
        audits: One per classifier.
        comparison: The page that puts them side by side.
    """

    folder: Path
    audits: tuple[Audit, ...]
    comparison: Path


def run_demo(
    out: str | Path,
    *,
    seed: int = 0,
    slides: int = 240,
    classes: int = 2,
    settings: AuditSettings = AuditSettings(seeds=(0,)),  # noqa: B008
    say: Callable[[str], None] = lambda line: None,
    progress: Progress = lambda items, what: items,
) -> DemoResult:
    """Make the embedded cohort, train three classifiers, audit each, and compare them.

    What an earlier run of the same demo has finished is kept.

    Args:
        out: Folder to make.
        seed: Of cohort and training.
        slides: Number of slides.
        classes: 2 or 3 types of tumour.
        settings: Of the audits.
        say: Called with lines for people.
        progress: Wraps every loop that takes a while.
    """
    folder = make(out, seed=seed, slides=slides, classes=classes)
    cohort = Cohort.read(folder / FEATURES, folder / COHORT, keep=slides)
    marks = read_marks(folder / TRUTH)
    audits = []
    for model in MODELS:
        say(f"{model.name}: training")
        backbone = _trained(model, cohort, folder / MODELS_FOLDER / model.name, seed, progress)
        say(f"{model.name}: auditing")
        audit = run_audit(
            backbone,
            cohort,
            settings,
            folder / AUDITS_FOLDER / model.name,
            name=model.name,
            notes=(NOTE,),
            progress=progress,
        )
        audit = attach(audit, marks, MARKED)
        write_report(audit)
        audits.append(audit)
    page = write_comparison(audits, folder / COMPARISON)
    return DemoResult(folder, tuple(audits), page)


def _trained(
    model: DemoModel, cohort: Cohort, folder: Path, seed: int, progress: Progress
) -> Backbone:
    if not (folder / FACTS).exists():
        recipe = TrainingRecipe(seed=seed, **model.training)
        train_into(folder, model.name, cohort, recipe, widths=model.widths, progress=progress)
    return load(folder)
