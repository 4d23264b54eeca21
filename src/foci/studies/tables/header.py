"""What differs from the paper's setting, in sentences that stand above every table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from foci.audits.profiles import PAPER, PROFILES
from foci.studies.plan.blocks import BackboneEntry
from foci.studies.plan.study import Study
from foci.studies.published import COHORTS
from foci.studies.readings.facts import AuditFacts
from foci.studies.readings.measures import Place
from foci.studies.readings.numbers import StudyNumbers
from foci.studies.tables.naming import shown
from foci.words.plural import counted

TEST_SLIDES = {"nsclc": 209, "brca": 223, "panda": 2123}
ENCODER, N_CAP, SEEDS, EPOCHS = "UNI2-h", 1024, 3, 20
COMPARED = ("recipe", "fit_target", "kappa", "k_max", "deletion", "choose_by")
"""Settings of an audit that the paper fixes."""


def differences(study: Study, numbers: StudyNumbers) -> tuple[str, ...]:
    """Cohorts, encoder, classifiers and every setting that is not the paper's."""
    return (
        *_cohorts(numbers),
        *_classifiers(study),
        *_settings(study),
        "A z compares means over seeds of different slides and models: it says how far apart two "
        "numbers are in units of their spread over seeds, and nothing about patients.",
    )


def facts_by_cohort(numbers: StudyNumbers) -> dict[str, AuditFacts]:
    """Facts of one main audit of every cohort that has one."""
    found = {}
    for cohort in numbers.cohorts:
        for backbone in numbers.backbones:
            read = list(numbers.read(Place(cohort, backbone)).values())
            if read:
                found[cohort] = read[0].facts
                break
    return found


def _cohorts(numbers: StudyNumbers) -> Iterator[str]:
    for cohort, facts in facts_by_cohort(numbers).items():
        paper = TEST_SLIDES.get(cohort)
        same = (
            f" (the paper's {shown(cohort)}: {paper})" if paper else " (not a cohort of the paper)"
        )
        encoder = facts.encoder or "an encoder that the files do not name"
        yield (
            f"{shown(cohort)}: {counted(facts.n_slides, 'test slide')}{same} of "
            f"{counted(facts.n_cases, 'patient')}, features of {encoder} (the paper: {ENCODER}), "
            f"a median of {facts.median_tiles:g} tiles; 32 tiles are "
            f"{100 * facts.share_of_32:.0f} % of a bag on average."
        )
    absent = [shown(cohort) for cohort in COHORTS if cohort not in numbers.cohorts]
    if absent:
        yield f"Of the paper's cohorts, not in this study: {', '.join(absent)}."


def _classifiers(study: Study) -> Iterator[str]:
    told: dict[str, list[str]] = {}
    for name, entry in study.backbones.items():
        for what in _of_backbone(entry):
            told.setdefault(what, []).append(shown(name))
    for what, names in told.items():
        yield f"{', '.join(names)}: {what}."


def _of_backbone(entry: BackboneEntry) -> Iterator[str]:
    if entry.models:
        yield "ready-made checkpoints instead of training in this study"
    if entry.preset != "paper":
        yield f"preset {entry.preset!r} instead of the paper's"
    if entry.widths:
        yield f"widths {_listed(entry.widths)} instead of the paper's"
    epochs = entry.training.get("epochs", EPOCHS)
    if epochs != EPOCHS:
        yield f"{counted(epochs, 'epoch')} of training (the paper's TransMIL: {EPOCHS})"
    other = {name: value for name, value in entry.training.items() if name != "epochs"}
    if other:
        yield f"trained with {_listed(other)}"


def _settings(study: Study) -> Iterator[str]:
    if len(study.seeds) != SEEDS:
        yield f"{counted(len(study.seeds), 'seed')} instead of {SEEDS}."
    if study.n_cap != N_CAP:
        yield f"At most {study.n_cap} tiles per bag instead of {N_CAP}."
    if study.std != "population":
        yield "± is the sample standard deviation over seeds; the paper prints the population's."
    own = study.settings(study.seeds[0])
    paper = study.settings(study.seeds[0]).model_copy(update=dict(PROFILES[PAPER]))
    for name in COMPARED:
        here, there = _setting(own, name), _setting(paper, name)
        if here != there:
            yield f"{name} is {_plain(here)}; the paper's is {_plain(there)}."
    if own.recipe_settings:
        yield f"The recipe of the selector has {_listed(own.recipe_settings)}."


def _setting(settings: Any, name: str) -> Any:
    return settings.fitted_for if name == "fit_target" else getattr(settings, name)


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _listed(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())
