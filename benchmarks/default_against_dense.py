"""The default audit, with adaptive counts, against ``--dense``, which computes every one.

Both audit the same slides with the same selectors. Compared are MSK of every slide, ranking and
order, Reach, the answers at every threshold, decisive K of every order that the default deletes,
and whether each area lies within its stated bound. Processor time of both is printed; misses are
listed.

    python benchmarks/default_against_dense.py COHORT MODEL --slides 30 --orders 4
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

import foci
from foci.audits import StoredAudit
from foci.audits.run import RunOptions, run
from foci.audits.settings import AuditSettings
from foci.audits.sources import Sources
from foci.bags import Cohort

SHORT = {"schedule.epochs": 1, "schedule.warmup": 0}


def main() -> None:
    """Audit twice, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cohort", type=Path, help="folder with cohort.csv and a features folder")
    parser.add_argument("model", type=Path)
    parser.add_argument("--slides", type=int, default=30)
    parser.add_argument("--orders", type=int, default=10, help="random orders")
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = foci.backbones.load(options.model)
    features = next(path for path in sorted(options.cohort.iterdir()) if path.is_dir())
    cohort = Cohort.read(features, options.cohort / "cohort.csv", cache=False)
    settings = AuditSettings(random_orders=options.orders, seeds=(0, 1), recipe_settings=SHORT)
    with tempfile.TemporaryDirectory() as place:
        selectors = []
        for seed in settings.seeds:
            selectors.append(Path(place, f"selector-{seed}"))
            foci.selectors.fit(model, cohort, recipe=settings.plan, seed=seed, out=selectors[-1])
        audits = []
        for dense in (False, True):
            begun = time.process_time()
            audits.append(
                run(Sources(model, some(cohort, options.slides)),
                    settings.model_copy(update={"dense": dense}),
                    Path(place, f"audit-{dense}"), RunOptions(selectors=selectors))
            )  # fmt: skip
            name = "dense" if dense else "default"
            print(f"{name}: {time.process_time() - begun:.0f} s", flush=True)
        compare(*audits)


def some(cohort: Cohort, number: int) -> Cohort:
    """The cohort with that many test slides, drawn once."""
    test = [slide.slide_id for slide in cohort.split("test")]
    kept = set(np.random.default_rng(0).permutation(test)[:number])
    slides = tuple(s for s in cohort if s.split != "test" or s.slide_id in kept)
    return replace(cohort, slides=slides)


def compare(adaptive: StoredAudit, dense: StoredAudit) -> None:
    """Print what agrees and what does not."""
    views = {audit: audit.measured(audit.manifest.settings) for audit in (adaptive, dense)}
    for view in views[adaptive].tables:
        equal = total = inside = 0
        largest, bounds, misses, decisive, found = 0.0, [], [], 0, 0
        for name in views[adaptive].curves.rankings:
            own, full = (views[audit].of(name, view) for audit in (adaptive, dense))
            same = (own.msk == full.msk) | (np.isnan(own.msk) & np.isnan(full.msk))
            equal, total = equal + int(same.sum()), total + same.size
            error = np.abs(own.aukc - full.aukc)
            inside += int((error <= own.aukc_error + 1e-6).sum())
            largest = max(largest, float(error.max()))
            bounds.append(own.aukc_error.mean())
            deleted = own.deleted.any(axis=1)
            a, b = own.decisive[deleted], full.decisive[deleted]
            agree = (a == b) | (np.isnan(a) & np.isnan(b))
            decisive, found = decisive + int(agree.sum()), found + agree.size
            names = views[adaptive].curves.slide_ids
            misses += [
                f"{name} {order}, {names[views[adaptive].rows(view)[slide]]}: "
                f"{a[order, slide]:g} instead of {b[order, slide]:g}"
                for order, slide in zip(*np.nonzero(~agree), strict=True)
            ]
        print(f"{view}: MSK equal {equal} of {total}; decisive K equal {decisive} of {found}; "
              f"areas within their bound {inside} of {total}, largest error {largest:.3f}, "
              f"mean bound {np.mean(bounds):.3f}")  # fmt: skip
        for miss in misses:
            print(f"  {miss}")
        reach = [
            {
                name: audit.summary.views[view][name].reach.estimate
                for name in views[adaptive].curves.rankings
            }
            for audit in (adaptive, dense)
        ]
        print(f"{view}: Reach {'equal' if reach[0] == reach[1] else reach}")
    answers = [in_words(audit) for audit in (adaptive, dense)]
    print("answers, at every threshold:", "equal" if answers[0] == answers[1] else "differ")
    for words in answers:
        print(f"  {words}")


def in_words(audit: StoredAudit) -> list[str]:
    """The three answers, and those at other thresholds."""
    found = audit.answers
    others = [f"{one.kappa:g}: {one.map}, {one.order}" for one in found.sensitivity]
    return [*found.in_short.values(), *others]


if __name__ == "__main__":
    main()
