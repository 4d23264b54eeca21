"""How often is a map that knows nothing believed, and how often one that knows something?

For one trained classifier and its test slides: random orders, random directions in feature space
and the attention of untrained ABMIL are each judged as the map of an audit, by the audit's own code
and with other content-free maps each time, drawn from a pool. Evidence with noise on its ranks
shows the power. Prints one row of the table in docs/statistics.md per kind of map, as JSON. A risk
or a number is read against its cut, with the columns of the demo.

    python benchmarks/calibration.py MODEL COHORT [--trials 200] [--patients 24]
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import norm, rankdata

from foci import backbones
from foci.audits.answers import DecidedView, _belief
from foci.audits.folder import AuditedSlide, CurveTable
from foci.audits.jobs import DELETED_ORDERS, AdaptiveCurves, RankingJob
from foci.audits.measure import COLUMNS as MEASURED
from foci.audits.measure import (
    NULL_TIE,
    REFERENCES,
    Measured,
    MeasuredSlides,
    Threshold,
    measure_slides,
    null_areas,
)
from foci.audits.null_maps import FEW_MAPS, SAMPLE, NullMaps
from foci.audits.outputs import with_sides
from foci.audits.reveal import SlideReveal
from foci.audits.settings import AuditSettings
from foci.audits.sources import open_sources
from foci.backbones.saved import read_record
from foci.bags import Bag, Cohort
from foci.bags.importers import Kind, Outcomes
from foci.demo.cohort import COLUMNS
from foci.metrics.answers import BELIEVED
from foci.metrics.compare import each_against
from foci.outputs import SURVIVAL
from foci.rankings import Ranking, score
from foci.rankings.controls import null_directions
from foci.reveal import Curve, EmbeddedBag, Revealer

POOL = 500
NOISE = 2.0
NO = ("no better than chance", "no better than a content-free map", "worse than chance")
Scorer = Callable[[Bag, EmbeddedBag], NDArray[np.float64]]


def main() -> None:
    """Judge every kind of map, print one line each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("cohort", type=Path, help="folder of features and cohort.csv")
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--patients", type=int, help="of the sure slides; default is all")
    parser.add_argument("--kinds", nargs="+", default=["order", "direction", "untrained", "noisy"])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    (features,) = options.cohort.glob("features*")
    output = read_record(options.model).output
    kind_of: Kind = "survival" if output in SURVIVAL else "value"
    columns = None if output is None else Outcomes(kind_of, COLUMNS[output])
    cohort = Cohort.read(features, options.cohort / "cohort.csv", outcomes=columns)
    sources, _ = with_sides(open_sources(options.model, cohort), AuditSettings())
    bench = Bench(sources.backbone, sources.cohort, options.patients, options.seed)
    for kind in options.kinds:
        answers = Counter(bench.judge(kind, options.trials, options.seed))
        n = sum(answers.values())
        row = {
            "model": options.model.name,
            "kind": kind,
            "trials": n,
            "slides": len(bench.slides),
            "patients": len({slide.case_id for slide in bench.slides}),
            "believed": sum(answers[name] for name in BELIEVED) / n,
            "yes": answers["yes"] / n,
            "no": sum(answers[name] for name in NO) / n,
            "answers": dict(answers),
        }
        print(json.dumps(row), flush=True)


class Bench:
    """The sure slides of one classifier, with evidence, random orders and a pool of null maps."""

    def __init__(
        self, backbone: backbones.Backbone, cohort: Cohort, patients: int | None, seed: int
    ) -> None:
        self.settings = AuditSettings(
            rankings=("native", "evidence", "random"), kappas=(0.9,), n_boot=500
        )
        self.revealer = Revealer(backbone, recheck=())
        self.closed = self.revealer.engine == "closed-form"
        self.classes = tuple(cohort.classes)
        self.reveal = SlideReveal(backbone, self.settings, self.classes)
        self.bags: list[tuple[Bag, EmbeddedBag, NDArray[np.float64]]] = []
        self.slides: list[AuditedSlide] = []
        sure = []
        for slide in cohort.split("test").slides:
            bag = cohort.store.bag(slide)
            opened = self.revealer.open(bag)
            full = opened.full().numpy()
            if full.max() >= self.settings.kappa:
                sure.append((slide, bag, opened.with_target(int(full.argmax())), full))
        rng = np.random.default_rng(seed)
        cases = sorted({slide.case_id for slide, *_ in sure})
        kept = set(rng.permutation(cases)[: patients or len(cases)].tolist())
        for slide, bag, opened, full in sure:
            if slide.case_id in kept:
                self.bags.append((bag, opened, full))
                self.slides.append(AuditedSlide(slide.slide_id, slide.case_id, n_tiles=len(bag)))
        if not self.closed:  # what an audit takes for its null maps is all that is judged here
            self.bags, self.slides = self.bags[:SAMPLE], self.slides[:SAMPLE]
        self.base = [
            *self.curves(
                "evidence", lambda bag, opened: score("evidence", backbone, opened).scores
            ),
            *self.random_curves(),
        ]
        features = np.concatenate([np.asarray(bag.features, float) for bag, *_ in self.bags])
        self.spread = features.std(axis=0)
        pool = NullMaps(null_directions(POOL, self.spread, seed=10_000), None)
        self.pool = [pool.curve(opened, full) for _, opened, full in self.bags]
        self.known = self.measured(self.base)
        found = null_areas(CurveTable.of(self.pool), self.known.slides)
        assert found is not None
        random = self.known.of("random").with_deletions.null_area
        self.nulls = each_against(found, random, NULL_TIE)

    def curves(self, name: str, scorer: Scorer) -> Iterator[Curve]:
        """Insertion and deletion of one map on every slide."""
        for bag, opened, full in self.bags:
            ranking = Ranking(name, bag.slide_id, scorer(bag, opened))
            yield from self.both(opened, full, ranking, None, control=False, deleted=True)

    def random_curves(self) -> Iterator[Curve]:
        """The random orders of an audit."""
        job = RankingJob("random", orders=self.settings.random_orders)
        for _, opened, full in self.bags:
            for seed, ranking in job.rank(opened):
                deleted = (seed or 0) < DELETED_ORDERS
                yield from self.both(opened, full, ranking, seed, control=True, deleted=deleted)

    def both(
        self,
        opened: EmbeddedBag,
        full: NDArray[np.float64],
        ranking: Ranking,
        seed: int | None,
        *,
        control: bool,
        deleted: bool,
    ) -> Iterator[Curve]:
        """As an audit computes them."""
        order, n, searched = torch.from_numpy(ranking.order), len(opened), 0
        if self.closed:
            also = [order] if deleted else []
            (kept,), left = self.reveal._dense([order], also, opened, full, None)
            searched = int(self.settings.last_deletion(n))
        else:
            adaptive = AdaptiveCurves(opened, self.settings, full, None)
            kept, points = adaptive(order, control=control, deleted=deleted)
            left = [points] if deleted else []
        own = (opened.slide_id, ranking.name, seed)
        yield Curve(*own, "insert", n, *kept, full, ranking.tied, searched)
        for points in left:
            yield Curve(*own, "delete", n, *points, full, ranking.tied, searched)

    def judge(self, kind: str, trials: int, seed: int) -> Iterator[str]:
        """The answers to "Can I believe the map?", one per trial."""
        rng = np.random.default_rng([seed, 1])
        n_maps = self.settings.null_maps if self.closed else FEW_MAPS
        for trial in range(trials):
            native = list(self.curves("native", self.scorer(kind, [seed, trial])))
            own = self.measured(native)
            table = CurveTable.of([*native, *self.base, *self.pool])
            chosen = [*rng.permutation(POOL)[:n_maps], *range(POOL, POOL + len(REFERENCES))]
            both = stacked(own.tables["prediction"], self.known.tables["prediction"])
            tables: Any = {"prediction": both}
            found: dict[str, Any] = {
                name: np.concatenate([getattr(own, name), getattr(self.known, name)])
                for name in ("first_tiles_tied", "kept")
            }
            nulls = self.nulls[chosen]
            yield self.answer(
                replace(own, curves=table, tables=tables, null_map_wins=nulls, **found)
            )

    def measured(self, curves: list[Curve]) -> MeasuredSlides:
        """Some rankings, at the counts of the content-free maps too."""
        table = CurveTable.of(curves)
        return measure_slides(table, self.slides, self.classes, self.settings)

    def answer(self, measured: MeasuredSlides) -> str:
        """By the rule of an audit."""
        view = DecidedView(measured, self.settings, Threshold(self.settings.kappa))
        return _belief(view)[0]

    def scorer(self, kind: str, seed: list[int]) -> Scorer:
        """A map that knows nothing, or evidence with noise."""
        rng = np.random.default_rng(seed)
        if kind == "order":
            return lambda bag, opened: rng.random(len(bag))
        if kind == "direction":
            along = rng.standard_normal(len(self.spread)) / np.maximum(self.spread, 1e-9)
            return lambda bag, opened: np.asarray(bag.features, float) @ along
        if kind == "untrained":
            torch.manual_seed(int(rng.integers(2**31)))
            fresh = backbones.create("abmil", d_in=len(self.spread), n_classes=2).eval()
            return lambda bag, opened: score("native", fresh, bag).scores

        def noisy(bag: Bag, opened: EmbeddedBag) -> NDArray[np.float64]:
            known = score("evidence", self.revealer.backbone, opened).scores
            normal = norm.ppf((rankdata(known) - 0.5) / len(known))
            return np.asarray(normal + NOISE * rng.standard_normal(len(known)))

        return noisy


def stacked(first: Measured, second: Measured) -> Measured:
    """The orders of both, on the same slides."""
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(first, name), getattr(second, name)]) for name in MEASURED
    }
    return Measured((*first.orders, *second.orders), first.thresholds, first.k_max, columns)


if __name__ == "__main__":
    main()
