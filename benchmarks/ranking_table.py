"""Training-free rankings against native, random order and a selector, with decisive sets.

For every trained classifier given (folders of ``foci train``) and every ranking: decided slides of
one split (the full bag gives its predicted class a probability of at least 0.9), predicted-class
view. One JSON file per classifier, ranking and split, with one row per slide and order; a cell that
exists is not measured again. Pooling classifiers are read at every count; others are read at every
count until the first crossing, and both ways on the counts of ``GRID``, so that their decisive K is
an upper bound.

The first table is over the decided slides; the second shows native, evidence and selector class by
class; the third, against truth, is over the decided slides that are also correct and have
witnesses, where ``truth.parquet`` or ``tile_truth.parquet`` lies beside the labels. A missing
decisive K counts as infinite in medians and rank correlations; precision and recall are of the
decisive sets that exist. The first and the third are means over the seeds.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

import evidence_candidates
import foci
from foci.backbones import Backbone
from foci.bags import Cohort
from foci.rankings.evidence.ties import tied_share
from foci.reveal import GRID, EmbeddedBag, Revealer, default_counts
from foci.reveal.candidates.pooled import pools
from ranking_columns import AGAINST_TRUTH, OVERALL, Row, show, show_by_class

KAPPA, K_MAX = 0.9, 256
DROPS = (16, 32, 64, 128, 256)
Scores = Callable[[EmbeddedBag], NDArray[np.float64]]


def main() -> None:
    """Measure what is missing, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cohort", type=Path, required=True, help="folder with cohort.csv")
    parser.add_argument("--models", type=Path, nargs="+", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--split", default="val", help="split to measure; val while choosing")
    parser.add_argument("--rankings", nargs="+", help="also names of selector recipes, which are "
                        "fitted; default: native, random, all candidates")  # fmt: skip
    parser.add_argument("--orders", type=int, default=5, help="random orders per slide")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", dest="changes",
                        help="settings of every recipe, such as schedule.epochs=10")  # fmt: skip
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    features = next(p for p in sorted(options.cohort.iterdir()) if p.is_dir())
    cohort = Cohort.read(features, options.cohort / "cohort.csv", keep=2000)
    truth = read_truth(options.cohort)
    cells: dict[tuple[str, str], list[list[Row]]] = {}
    for folder in options.models:
        model = foci.backbones.load(folder)
        names = [n for n in options.rankings or default_names() if usable(n, model)]
        paths = {n: options.out / f"{folder.name}--{n}--{options.split}.json" for n in names}
        missing = [name for name in names if not paths[name].exists()]
        for name, rows in measure(model, cohort, truth, missing, folder, options).items():
            paths[name].write_text(json.dumps(rows))
        for name in names:
            key = (folder.name.rsplit("-", 1)[0], name)
            cells.setdefault(key, []).append(json.loads(paths[name].read_text()))
        print(f"measured {folder.name}", flush=True)
    show(cells, OVERALL, lambda row: True)
    show_by_class(cells, ("native", "evidence", "selector", "tuned"), cohort.classes)
    if truth:
        show(cells, AGAINST_TRUTH, lambda row: row["correct"] and row["n_true"] > 0)


def default_names() -> list[str]:
    """Everything that needs no training."""
    known = ["native", "random", "single-tile", "attention-x-evidence", "evidence"]
    candidates = [*evidence_candidates.EVERY, *evidence_candidates.POOLED]
    return [n for n in [*known, *candidates] if n in foci.rankings.available()]


def usable(name: str, model: Backbone) -> bool:
    """Whether the classifier has what the ranking needs; any has a selector."""
    return name in foci.selectors.RECIPES or name in foci.rankings.available(model)


def measure(
    model: Backbone,
    cohort: Cohort,
    truth: dict[str, NDArray[np.bool_]],
    names: Sequence[str],
    folder: Path,
    options: argparse.Namespace,
) -> dict[str, list[Row]]:
    """Rows of every ranking; each bag is embedded once."""
    if not names:
        return {}
    seed = int(folder.name.rsplit("-", 1)[1])
    scorers = {
        n: scorers_of(n, model, cohort, seed, options, options.out / f"{folder.name}--{n}")
        for n in names
    }
    rows: dict[str, list[Row]] = {name: [] for name in names}
    revealer = Revealer(model)
    for bag in cohort.split(options.split).bags():
        opened = revealer.open(bag)
        full = opened.full().numpy()
        target = int(full.argmax())
        if len(bag) < 2 or full[target] < KAPPA:
            continue
        marks = truth.get(bag.slide_id)
        witness = None if marks is None else marks[bag.tiles]
        about = {
            "slide": bag.slide_id,
            "n_tiles": len(bag),
            "target": target,
            "correct": target == cohort.target(bag.slide_id),
            "n_true": 0 if witness is None else int(witness.sum()),
        }
        for name in names:
            for number, scorer in enumerate(scorers[name]):
                found = read(opened, scorer(opened.with_target(target)), target, full, witness)
                rows[name].append({**about, "order": number, **found})
    return rows


def scorers_of(
    name: str,
    model: Backbone,
    cohort: Cohort,
    seed: int,
    options: argparse.Namespace,
    fitted: Path,
) -> list[Scores]:
    """The rankings behind a name: several random orders, or one of anything else.

    A selector is fitted into the folder ``fitted``, where a killed fit goes on; ``selector`` stands
    for the default recipe.
    """
    if name == "random":
        return [
            lambda bag, s=number: foci.rankings.score("random", model, bag, seed=s).scores
            for number in range(options.orders)
        ]
    if name != "selector" and name not in foci.selectors.RECIPES:
        return [lambda bag: foci.rankings.score(name, model, bag).scores]
    changes = {key: json.loads(value) for key, value in (c.split("=", 1) for c in options.changes)}
    base = foci.selectors.recipe("default" if name == "selector" else name)
    recipe = foci.selectors.vary(base, changes)
    if (fitted / "selector.json").exists():
        selector = foci.selectors.load(fitted, model)
    else:
        selector = foci.selectors.fit(model, cohort, recipe=recipe, seed=seed, out=fitted)
    return [lambda bag: foci.rankings.score("selector", model, bag, selector=selector).scores]


def read(
    opened: EmbeddedBag,
    scores: NDArray[np.float64],
    target: int,
    full: NDArray[np.float64],
    witness: NDArray[np.bool_] | None,
) -> Row:
    """One ranking of one slide."""
    n, order = len(opened), np.argsort(-scores, kind="stable")
    if pools(opened.backbone):
        insert_ks = default_counts(n, "insert").numpy()
        delete_ks = default_counts(n, "delete").numpy()[1:]
        revealed = opened.curve(order, insert_ks).numpy()
        first = foci.metrics.msk(revealed, insert_ks, target, kappa=KAPPA)
    else:
        crossing = opened.curve(order, stop=lambda probs: crossed(probs.numpy(), target)).numpy()
        first = foci.metrics.msk(crossing, np.arange(1, len(crossing) + 1), target, kappa=KAPPA)
        insert_ks = delete_ks = np.array([k for k in GRID if k < n])
        revealed = opened.curve(order, insert_ks).numpy()
    removed = opened.curve(order, delete_ks, direction="delete").numpy()
    decisive = foci.metrics.decisive_k(revealed, insert_ks, removed, delete_ks, target, KAPPA)
    return {
        "msk": first,
        "restricted": min(K_MAX, n) if first is None else first,
        "decisive": decisive,
        "faithfulness": faithfulness(full, removed, delete_ks, target),
        "ties": tied_share(scores),
        **against_truth(scores, order, decisive, witness),
    }


def crossed(probs: NDArray[np.float64], target: int) -> bool:
    """Whether the curve so far has reached kappa."""
    return foci.metrics.msk(probs, np.arange(1, len(probs) + 1), target, kappa=KAPPA) is not None


def faithfulness(
    full: NDArray[np.float64],
    removed: NDArray[np.float64],
    delete_ks: NDArray[np.int64],
    target: int,
) -> float | None:
    """Faithfulness AUC over the counts of ``DROPS`` below N; None with fewer than two."""
    at = np.flatnonzero(np.isin(delete_ks, DROPS))
    if len(at) < 2:
        return None
    ks = delete_ks[at]
    drops = foci.metrics.deletion_drop(full, removed[at], ks, target)
    return foci.metrics.faithfulness_auc(ks, drops, k_max=int(ks[-1]))


def against_truth(
    scores: NDArray[np.float64],
    order: NDArray[np.int64],
    decisive: int | None,
    witness: NDArray[np.bool_] | None,
) -> Row:
    """Average precision, and precision and recall of the decisive set."""
    if witness is None or not witness.any():
        return {"average_precision": None, "precision": None, "recall": None}
    chosen = None if decisive is None else witness[order[:decisive]]
    return {
        "average_precision": foci.metrics.average_precision(scores, witness),
        "precision": None if chosen is None else float(chosen.mean()),
        "recall": None if chosen is None else float(chosen.sum() / witness.sum()),
    }


def read_truth(cohort: Path) -> dict[str, NDArray[np.bool_]]:
    """Witness marks by slide; empty where there is no file."""
    path = next((cohort / n for n in ("truth.parquet", "tile_truth.parquet")
                 if (cohort / n).exists()), None)  # fmt: skip
    if path is None:
        return {}
    table = pq.read_table(path, columns=["slide_id", "tile", "witness"]).to_pydict()
    marks: dict[str, dict[int, bool]] = {}
    for slide, tile, witness in zip(*table.values(), strict=True):
        marks.setdefault(slide, {})[tile] = witness
    return {s: np.array([tiles[i] for i in range(len(tiles))]) for s, tiles in marks.items()}


if __name__ == "__main__":
    main()
