"""One live report for every answer that an audit can give about a map.

The cohort and the classifier are those of ``foci demo``; each map is made with one known fault, so
that the answer is known before the audit. An audit that says otherwise ends the build.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

import foci
from foci.audits.truth import attach, read_truth
from foci.backbones import Backbone
from foci.backbones.saved import read_record, save
from foci.backbones.training import TrainingRecipe
from foci.backbones.training.run import train_into
from foci.bags import Bag
from foci.demo.folder import COHORT, FEATURES, TRUTH
from foci.demo.run import MARKED
from foci.reports import write_report

MARKER = re.compile(r"<!-- live: ([a-z-]+) -->")
LEAST, FEW, CONTRARY, SEED = 5, 12, 24, 0
"""Slides of the smallest audits; contrary tiles at the head of a map; seed of cohort and model."""
DIRECTION = 3
"""Seed of a random direction: the first, from 0 on, whose order beats random orders."""
ORDER = 3
"""Seed of random orders: the first, from 1 on, that is no better than chance on all slides and open
on few."""
SOFTENED = 1.6
"""What the logits are divided by, so that the classifier is sure of fewer than half its slides."""
Scores = NDArray[np.float64]


def native(model: Backbone, bag: Bag) -> Scores:
    """The classifier's own attention."""
    return _score("native", model, bag)


def upside_down(model: Backbone, bag: Bag) -> Scores:
    """The attention with its sign reversed."""
    return -native(model, bag)


def contrary_first(model: Backbone, bag: Bag) -> Scores:
    """The tiles that speak most against the decision first, then those that it hangs on."""
    scores = _score("evidence", model, bag)
    scores[np.argsort(_score("single-tile", model, bag), kind="stable")[:CONTRARY]] += np.ptp(
        scores
    )
    return scores


def never_flips(model: Backbone, bag: Bag) -> Scores:
    """The best tile by evidence that the decision survives the loss of, else the least convincing.

    The decision is close without the first tiles, and stays what it is.
    """
    target = int(model.predict(bag.x).argmax())
    best = np.argsort(-_score("evidence", model, bag), kind="stable").tolist()
    least = np.argsort(_score("single-tile", model, bag), kind="stable").tolist()
    left, scores = torch.ones(len(bag), dtype=torch.bool), np.zeros(len(bag))
    for place in range(len(bag) - 1):
        tile = next(one for one in best if left[one])
        left[tile] = False
        if int(model.predict(bag.x[left]).argmax()) != target:
            left[tile] = True
            tile = next(one for one in least if left[one])
            left[tile] = False
        scores[tile] = len(bag) - place
    return scores


def random_direction(model: Backbone, bag: Bag) -> Scores:
    """The tiles sorted along a random direction in feature space, the same for all slides."""
    features = np.asarray(bag.features, dtype=np.float64)
    return features @ np.random.default_rng(DIRECTION).normal(size=features.shape[1])


def random_order(model: Backbone, bag: Bag) -> Scores:
    """A random order, another for every slide."""
    number = int.from_bytes(bag.slide_id.encode(), "little") % 2**63
    return np.random.default_rng([number, ORDER]).random(len(bag))


def evidence(model: Backbone, bag: Bag) -> Scores:
    """The evidence of single tiles."""
    return _score("evidence", model, bag)


@dataclass(frozen=True)
class Exhibit:
    """A map, and the answers that its audit has to give about the map and a better order."""

    scores: Callable[[Backbone, Bag], Scores]
    called: str
    believe: str
    order: str = "headroom"
    slides: int | None = None
    softened: bool = False


EXHIBITS = {
    "yes": Exhibit(native, "ABMIL, its attention", "yes"),
    "only-as-a-pointer": Exhibit(
        contrary_first, "ABMIL, contrary tiles first", "only as a pointer"
    ),
    "sufficient-not-decisive": Exhibit(
        never_flips, "ABMIL, tiles that never flip it", "sufficient, not decisive"
    ),
    "no-better-than-a-content-free-map": Exhibit(
        random_direction, "ABMIL, a random direction", "no better than a content-free map"
    ),
    "no-better-than-chance": Exhibit(
        random_order, "ABMIL, a random order", "no better than chance"
    ),
    "worse-than-chance": Exhibit(upside_down, "ABMIL, attention upside down", "worse than chance"),
    "inconclusive": Exhibit(
        random_order, "ABMIL, a random order, twelve slides", "inconclusive", slides=FEW
    ),
    "not-assessable": Exhibit(
        native, "ABMIL, five slides", "not assessable", "not assessable", slides=LEAST
    ),
    "few-sure-slides": Exhibit(native, "ABMIL, softened", "yes", softened=True),
    "native-suffices": Exhibit(evidence, "ABMIL, evidence as a map", "yes", "native suffices"),
}


def hang(page: str, runs: Path, reports: Path) -> str:
    """Make every report that the page shows, and put it in the place of its marker."""
    runs.mkdir(parents=True, exist_ok=True)
    reports.mkdir(parents=True, exist_ok=True)
    demo = foci.demo.make(runs / "demo", seed=SEED)
    cohort = foci.Cohort.read(demo / FEATURES, demo / COHORT)
    if not (runs / "model" / "backbone.json").exists():
        train_into(runs / "model", "abmil", cohort, TrainingRecipe(seed=SEED))
    return MARKER.sub(lambda found: _shown(found[1], runs, reports), page)


def _shown(name: str, runs: Path, reports: Path) -> str:
    audit = _audited(name, EXHIBITS[name], runs)
    answers, asked = audit.answers, EXHIBITS[name]
    if (answers.map.answer, answers.order.answer) != (asked.believe, asked.order):
        raise RuntimeError(f"gallery: {name} is {answers.map.answer!r}, {answers.order.answer!r}")
    truth = read_truth(runs / "demo" / TRUTH, what=MARKED)
    write_report(attach(audit, truth), reports / f"{name}.html")
    address = f"{reports.name}/{name}.html"
    return (
        f'<p><a class="md-button" href="{address}">Open the live report</a></p>\n\n'
        f'<iframe class="live" loading="lazy" title="{name}" src="{address}"></iframe>'
    )


def soften(model: Path, out: Path) -> Path:
    """The classifier with its logits divided: every decision stays, with less confidence."""
    softer, record = foci.backbones.load(model), read_record(model)
    head = [one for name, one in softer.named_parameters() if name.startswith("head.")]
    for one in head[-2:]:
        one.data /= SOFTENED
    return save(softer, out, classes=record.classes)


def _audited(name: str, exhibit: Exhibit, runs: Path) -> foci.Audit:
    table = _table(name, exhibit.slides, runs)
    model = runs / "model"
    if exhibit.softened:
        model = soften(model, runs / "softened")
    cohort = foci.Cohort.read(runs / "demo" / FEATURES, table)
    scores = runs / f"{name}-map.csv"
    if not scores.exists():
        _write_map(scores, exhibit, foci.backbones.load(model), cohort)
    called = exhibit.scores.__name__.replace("_", "-")
    chosen = None if exhibit.scores is native else f"{called}-map=from-file:{scores}"
    return foci.audit(
        model, cohort, runs / name, name=exhibit.called, map=chosen,
        rankings=["native", "evidence", "random"], force=True, progress=False,
    )  # fmt: skip


def _table(name: str, slides: int | None, runs: Path) -> Path:
    """The label table with only so many test slides, each of another patient."""
    whole = runs / "demo" / COHORT
    if slides is None:
        return whole
    with whole.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    tested = {row["case_id"]: row["slide_id"] for row in rows if row["split"] == "test"}
    kept = set(list(tested.values())[:slides])
    path = runs / f"{name}.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(r for r in rows if r["split"] != "test" or r["slide_id"] in kept)
    return path


def _write_map(path: Path, exhibit: Exhibit, model: Backbone, cohort: foci.Cohort) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["slide_id", "tile", "score"])
        for slide in (slide for slide in cohort.slides if slide.split == "test"):
            scores = exhibit.scores(model, cohort.bag(slide.slide_id))
            writer.writerows([slide.slide_id, i, f"{s:.9g}"] for i, s in enumerate(scores))


def _score(name: str, model: Backbone, bag: Bag) -> Scores:
    return np.array(foci.rankings.score(name, model, bag).scores, dtype=np.float64)
