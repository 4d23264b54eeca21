"""Selectors against native and random order, on bags with and without tile truth.

For every trained classifier given (folders of ``foci train``), fits each recipe on the train split
and scores the test split in the predicted-class view: restricted mean of K, Reach, Faithfulness
AUC, share of slides whose set is specific to its class and, where ``truth.parquet`` lies beside
the labels, precision within the first 8 tiles and average precision on the slides that have
witnesses. Rankings are read at the class that the classifier predicts; the last column reads them
at the witnesses' own class, which is another ranking on misclassified slides if it depends on the
class. One JSON file per classifier and recipe; the table is the mean over the seeds.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch

import foci
from foci.backbones import Backbone
from foci.bags import Bag, Cohort
from foci.reveal import EmbeddedBag, Revealer

COUNTS = (16, 32, 64, 128, 256)
K_MAX = 256
Order = Callable[[Bag, int], Any]
COLUMNS = ("restricted", "reach", "faithfulness", "specific", "precision8", "auprc", "auprc_class")


def main() -> None:
    """Fit, score, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cohort", type=Path, required=True, help="folder with cohort.csv")
    parser.add_argument("--models", type=Path, nargs="+", required=True)
    parser.add_argument("--recipes", nargs="+", default=["paper-ste", "paper-soft", "default"])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--split", default="test", help="split to score; val while searching")
    parser.add_argument("--orders", type=int, default=10, help="random orders per slide")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    features = options.cohort / "features"
    cohort = Cohort.read(features, options.cohort / "cohort.csv", keep=2000)
    truth = read_truth(options.cohort / "truth.parquet")
    rows: dict[tuple[str, str], list[dict[str, float]]] = {}
    for folder in options.models:
        model = foci.backbones.load(folder)
        seed = int(folder.name.rsplit("-", 1)[1])
        for name in ["native", "random", *options.recipes]:
            cell = options.out / f"{folder.name}--{name.replace('/', '_')}--{options.split}.json"
            if not cell.exists():
                scores = score(model, cohort, options, name, seed, truth)
                cell.write_text(json.dumps(scores))
            key = (folder.name.rsplit("-", 1)[0], name)
            rows.setdefault(key, []).append(json.loads(cell.read_text()))
            show(folder.name, name, rows[key][-1:])
    print("\nmean over seeds")
    for (model_name, name), values in rows.items():
        show(model_name, name, values)


def show(model: str, name: str, values: list[dict[str, float]]) -> None:
    """One line of the table."""
    cells = [statistics.mean(v[c] for v in values) for c in COLUMNS]
    print(f"| {model} | {name} | " + " | ".join(f"{c:.3f}" for c in cells) + " |", flush=True)


def score(
    model: Backbone,
    cohort: Cohort,
    options: argparse.Namespace,
    name: str,
    seed: int,
    truth: dict[str, Any],
) -> dict[str, float]:
    """All numbers of one ranking on one split."""
    orders = list(order_of(name, model, cohort, seed, options.orders))
    revealer = Revealer(model)
    per_slide: list[dict[str, float]] = []
    for bag in cohort.split(options.split).bags():
        opened = revealer.open(bag.x)
        target = int(opened.full().argmax())
        label = cohort.target(bag.slide_id)
        values = [
            measure(opened, order(bag, target), bag, target, truth, order(bag, label))
            for order in orders
        ]
        mean = {c: float(np.nanmean([v[c] for v in values])) if values else np.nan
                for c in COLUMNS if not all(np.isnan(v[c]) for v in values)}  # fmt: skip
        per_slide.append({c: mean.get(c, float("nan")) for c in COLUMNS})
    return {c: float(np.nanmean([s[c] for s in per_slide])) if
            any(not np.isnan(s[c]) for s in per_slide) else float("nan")
            for c in COLUMNS}  # fmt: skip


def order_of(
    name: str, model: Backbone, cohort: Cohort, seed: int, n_orders: int
) -> Iterator[Order]:
    """The rankings behind a name: several random orders, or one of anything else."""
    if name == "random":
        for number in range(n_orders):
            yield (
                lambda bag, target, s=number: (
                    foci.rankings.score("random", model, bag, target=target, seed=s).scores
                )
            )
    elif name in foci.rankings.available():
        yield lambda bag, target: foci.rankings.score(name, model, bag, target=target).scores
    else:
        torch.manual_seed(seed)
        fitted = foci.selectors.fit(
            model, cohort, recipe=recipe_of(name), seed=seed, criterion="loss"
        )
        yield (
            lambda bag, target: (
                foci.rankings.score("selector", model, bag, target=target, selector=fitted).scores
            )
        )


def recipe_of(text: str) -> foci.selectors.SelectorRecipe:
    """``name`` or ``name:key=value,key=value``."""
    import yaml

    name, _, changes = text.partition(":")
    pairs = [c.partition("=") for c in changes.split(";") if c]
    return foci.selectors.vary(
        foci.selectors.recipe(name), {key: yaml.safe_load(value) for key, _, value in pairs}
    )


def measure(
    opened: EmbeddedBag, scores: Any, bag: Bag, target: int, truth: dict[str, Any], of_class: Any
) -> dict[str, float]:
    """One ranking of one slide."""
    order = np.argsort(-scores, kind="stable")
    curve = opened.curve(order)
    ks = np.arange(1, len(curve) + 1)
    full = opened.full()
    count = foci.metrics.msk(curve, ks, target)
    drops_at = [k for k in COUNTS if k < len(bag)]
    faithfulness = float("nan")
    if len(drops_at) > 1:
        removed = opened.curve(order, ks=drops_at, direction="delete")
        drops = foci.metrics.deletion_drop(full, removed, drops_at, target)
        faithfulness = foci.metrics.faithfulness_auc(drops_at, drops, k_max=drops_at[-1])
    rival = foci.metrics.specificity(curve, ks, target, full)
    known = truth.get(bag.slide_id)
    located = known is not None and bool(known.any())
    witness = known[bag.tiles] if located else None
    return {
        "restricted": float(K_MAX if count is None else count),
        "reach": float(count is not None),
        "faithfulness": faithfulness,
        "specific": foci.metrics.specific_share([rival]),
        "precision8": foci.metrics.precision_at_k(scores, witness, 8) if located else float("nan"),
        "auprc": foci.metrics.average_precision(scores, witness) if located else float("nan"),
        "auprc_class": (
            foci.metrics.average_precision(of_class, witness) if located else float("nan")
        ),
    }


def read_truth(path: Path) -> dict[str, Any]:
    """Witness marks by slide; empty where there is no file."""
    if not path.exists():
        return {}
    table = pq.read_table(path).to_pydict()
    marks: dict[str, list[bool]] = {}
    for slide, witness in zip(table["slide_id"], table["witness"], strict=True):
        marks.setdefault(slide, []).append(witness)
    return {slide: np.array(values) for slide, values in marks.items()}


if __name__ == "__main__":
    main()
