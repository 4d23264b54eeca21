"""How near every ranking comes to the proven minimum K*, for every classifier with a bound.

Takes folders of ``foci train`` called COHORT-NAME-PRESET-SEED beside the folders of their cohorts
(``backbone_table.py`` trains such), and prints the table that docs/proofs.md shows a part of:
efficiency on the decided test slides, mean over the seeds, every ranking that needs no training.
The excess of greedy deletion is in tiles over K*. Fails if a ranking needs fewer tiles than K* on
any slide.

    python benchmarks/efficiency_table.py FOLDER [--kappa 0.9] [--rankings NAME ...]
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from foci import backbones
from foci.audits.sources import open_sources
from foci.backbones.freezing import eval_mode
from foci.bags import Cohort
from foci.metrics import decisive_k, efficiencies
from foci.rankings import available, minimal_set, score
from foci.reveal import Revealer

GREEDY, K_MAX = "greedy-deletion", 256
LEFT_OUT = {"selector", "from-file"}
RANDOM_ORDERS = 3


def main() -> None:
    """Measure what has no stored result yet, then print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kappa", type=float, default=0.9)
    parser.add_argument("--rankings", nargs="+", help="columns; default is every one")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for model in sorted(options.folder.glob("*-*-*-[0-9]")):
        cohort, name = model.name.split("-", 1)
        stored = options.folder / f"{model.name}.efficiency.json"
        if not stored.exists() and (model / "backbone.json").exists():
            stored.write_text(json.dumps(measured(model, options.folder / cohort, options.kappa)))
        if stored.exists():
            rows[cohort, name.rsplit("-", 1)[0]].append(json.loads(stored.read_text()))
    names = options.rankings or sorted({r for own in rows.values() for r in own[0]["efficiency"]})
    head = ["classifier (seeds)", "theorem", "decided", "exact", "none", *names, "greedy excess"]
    print(f"| cohort | {' | '.join(head)} |\n|{'---|' * (len(head) + 1)}")
    for (cohort, name), every in rows.items():
        if own := [one for one in every if one["theorem"]]:  # of the seeds that are sure of a slide
            print(f"| {cohort} | {name} ({len(own)}) | {' | '.join(cells(own, names))} |")


def cells(seeds: list[dict[str, Any]], names: list[str]) -> list[str]:
    """Counts of slides of all seeds, mean efficiencies, mean and largest excess of greedy."""
    totals = [str(sum(one[key] for one in seeds)) for key in ("decided", "exact", "none")]
    means = []
    for name in names:
        known = [e for one in seeds if (e := one["efficiency"].get(name)) is not None]
        means.append(f"{np.mean(known):.3f}" if known else "")
    excess = [k for one in seeds for k in one["excess"]]
    greedy = f"{np.mean(excess):.1f}, at most {max(excess)}" if excess else ""
    return [seeds[0]["theorem"], *totals, *means, greedy]


def measured(model: Path, cohort: Path, kappa: float) -> dict[str, Any]:
    """One classifier on the test slides of its cohort."""
    (features,) = cohort.glob("features*")
    sources = open_sources(model, Cohort.read(features, cohort / "cohort.csv"))
    backbone, revealer = sources.backbone, Revealer(sources.backbone, recheck=(kappa,))
    names = [name for name in available(backbone) if name not in LEFT_OUT]
    least: list[Any] = []
    found: dict[str, list[Any]] = {name: [] for name in names}
    kinds, theorem = Counter[str](), ""
    if backbone.capabilities.structure == "none":
        return {"theorem": "", "efficiency": {}}
    with eval_mode(backbone), torch.no_grad():
        for slide in sources.cohort.split("test").slides:
            bag = revealer.open(sources.cohort.store.bag(slide))
            full = bag.full().numpy()
            if full.max() < kappa or len(bag) < 2:
                continue
            bag = bag.with_target(int(full.argmax()))
            orders = {name: ranked(name, backbone, bag) for name in names}
            every = [torch.from_numpy(order) for own in orders.values() for order in own]
            ks = torch.arange(1, min(K_MAX, len(bag) - 1) + 1)
            both = zip(bag.curves(every, ks), bag.curves(every, ks, "delete"), strict=True)
            sizes = (decisive_k(up, ks, down, ks, bag.target, kappa) or np.nan for up, down in both)
            counts = {name: [next(sizes) for _ in own] for name, own in orders.items()}
            best = counts["evidence"][0]
            known = None if np.isnan(best) else orders["evidence"][0][: int(best)].tolist()
            proven = minimal_set(bag, kappa, known)
            theorem = proven.theorem if len(bag) > 1 else theorem
            kinds[proven.kind] += 1
            least.append(np.nan if proven.k is None else proven.k)
            for name in names:
                own = np.array(counts[name])
                assert not (own < least[-1]).any(), (slide.slide_id, name, own, proven)
                assert proven.kind != "none, proven" or np.isnan(own).all(), (slide, name, own)
                found[name].append(own)
    shares, excess = {}, []
    for name in names:
        each = [efficiencies(least, np.array(found[name])[:, i], K_MAX)
                for i in range(len(found[name][0]) if least else 0)]  # fmt: skip
        ratios = np.mean(each, axis=0) if each else np.empty(0)
        kept = ~np.isnan(ratios)
        assert not (ratios[kept] > 1).any(), name
        shares[name] = float(ratios[kept].mean()) if kept.any() else None
    if GREEDY in found and least:
        over = np.array(found[GREEDY])[:, 0] - np.array(least)
        excess = [int(k) for k in over[~np.isnan(over)]]
    return {
        "theorem": theorem,
        "decided": len(least),
        "exact": kinds["exact"],
        "none": kinds["none, proven"],
        "beyond": int((np.array(least) > K_MAX).sum()),
        "efficiency": shares,
        "excess": excess,
    }


def ranked(name: str, backbone: backbones.Backbone, bag: Any) -> list[Any]:
    """The orders of a ranking: one, or some of the random ones."""
    if name == "random":
        return [score(name, backbone, bag, seed=i).order.copy() for i in range(RANDOM_ORDERS)]
    options = {"rounds": 64} if name == GREEDY else {}
    return [score(name, backbone, bag, **options).order.copy()]


if __name__ == "__main__":
    main()
