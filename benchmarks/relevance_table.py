"""Which ranking finds the tiles that a model uses, by symmetric relevance gain.

Takes folders of models COHORT-MODEL-PRESET-SEED beside their cohorts (``backbone_table.py`` and
``outcome_models.py`` train such) and measures every ranking on the same test slides, at most 60 of
a cohort, 36 where a model has no closed form. Each model's numbers are kept in FOLDER/relevance, so
that a killed run resumes. Writes docs/appendix/relevance.csv, the gains, and relevance-pairs.csv
beside it, by how much each method gains more than another; prints the gains as a Markdown table.

- A slide is followed towards the class, or the side of the cut, that the model says. Gains are in
  log-odds, or in interquartile ranges of a risk or a number.
- Models without a closed form are asked at about 19 counts, the same from both ends; others at all.
- ``attention`` is the model's own map (of a transformer, how similar a tile is to the CLS token);
  ``rollout`` is attention rollout (Abnar and Zuidema 2020), for transformers;
  ``squared gradient`` and ``gradient x input`` are of the same gradient.
- A model of a number holds it as the difference f of two logits. They are written as -f/2 and f/2
  here, which changes no answer, so that gradients are those of f.

    python benchmarks/relevance_table.py FOLDER [FOLDER ...]
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from foci import rankings
from foci.audits.measure import log_odds
from foci.audits.outputs import with_sides
from foci.audits.settings import AuditSettings
from foci.audits.sources import open_sources
from foci.backbones import Backbone
from foci.backbones.models.transmil import TransMIL
from foci.backbones.transformer import EncoderLayer
from foci.bags import Cohort, Slide
from foci.bags.importers import Outcomes
from foci.bags.tables import write_csv
from foci.files.atomic import write_whole
from foci.metrics import symmetric_relevance_gain
from foci.metrics.stats import mean_intervals
from foci.rankings.gradient import logit_gradient
from foci.rankings.registry import ranking
from foci.reveal import EmbeddedBag, Revealer

Floats = NDArray[np.float64]
Cell = tuple[str, str, str]
"""Cohort, output and model."""

APPENDIX = Path(__file__).parents[1] / "docs/appendix"
OUTCOMES = {
    "cox": Outcomes("survival", ("days", "died")),
    "regression": Outcomes("value", ("score",)),
}
STEPS = 20
"""Of integrated gradients."""
RANDOM_ORDERS = {"closed form": 20, "other": 2}
METHODS = {
    "single tile": "single-tile",
    "integrated gradients": "integrated-gradients",
    "gradient x input": "gradient-x-input",
    "squared gradient": "squared-gradient",
    "attention": "native",
    "rollout": "attention-rollout",
    "evidence": "evidence",
    "random": "random",
}
COLUMNS = (
    "cohort", "output", "model", "method", "slides", "patients", "seeds", "gain", "low", "high",
    "seed 0", "seed 1", "seed 2", "always upward", "in probabilities",
)  # fmt: skip
PAIR_COLUMNS = (
    "cohort", "output", "model", "method", "other method", "difference", "low", "high",
)  # fmt: skip
UNSIGNED = ("squared gradient", "attention", "rollout", "random")
"""Scores that are the same whichever side is followed."""


def main() -> None:
    """Measure what has not been measured yet, then write and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", type=Path, nargs="+")
    options = parser.parse_args()
    torch.set_num_threads(1)
    cells: dict[Cell, list[list[dict[str, Any]]]] = {}
    for folder in options.folders:
        for model in sorted(folder.glob("*-*-paper-[0-9]")):
            cohort, name, *_ = model.name.split("-")
            known = cohort in ("embedded", "lc25000", "lung") and name in ("abmil", "transmil")
            if known and (model / "backbone.json").exists():
                output, slides = measured(model)
                cells.setdefault((cohort, output, name), []).append(slides)
    print_and_write(cells)


def measured(model: Path) -> tuple[str, list[dict[str, Any]]]:
    """The model's output, and the gains of its test slides, from an earlier run if there was one.

    Every slide with the gain of every ranking, and the gain in probabilities.
    """
    record = json.loads((model / "backbone.json").read_text())
    output = record.get("output") or "class"
    kept = model.parent / "relevance" / f"{model.name}.json"
    known: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    if known.get("fingerprint") == record["fingerprint"]:
        return output, known["slides"]
    cohort_folder = model.parent / model.name.split("-", 1)[0]
    (features,) = cohort_folder.glob("features*")
    labels = cohort_folder / "cohort.csv"
    cohort = Cohort.read(features, labels, outcomes=OUTCOMES.get(output))
    sources, settings = with_sides(open_sources(model, cohort), AuditSettings())
    if output != "class":
        centre_head(sources.backbone)
    test = sorted((s for s in sources.cohort if s.split == "test"), key=lambda s: s.slide_id)
    revealer = Revealer(sources.backbone, recheck=())
    every_count = revealer.engine == "closed-form"
    chosen = np.random.default_rng(0).permutation(len(test))[: 60 if every_count else 36]
    store = sources.cohort.store.for_model(sources.backbone.d_in)
    started, slides = time.process_time(), []
    for slide in (test[i] for i in sorted(chosen)):
        bag = revealer.open(store.bag(slide))
        slides.append(gains(bag, slide, settings.per_log_odds, every_count))
    spent = time.process_time() - started
    print(f"{model}: {len(slides)} slides, {spent:.0f} s of processor time", flush=True)
    found = {"fingerprint": record["fingerprint"], "seconds": spent, "slides": slides}
    kept.parent.mkdir(exist_ok=True)
    write_whole(kept, json.dumps(found).encode())
    return output, slides


def centre_head(backbone: Backbone) -> None:
    """Write the two logits of a number f as -f/2 and f/2."""
    head = backbone.head
    last = head[-1] if isinstance(head, nn.Sequential) else head
    assert isinstance(last, nn.Linear)
    with torch.no_grad():
        for values in (last.weight, last.bias):
            half = (values[1] - values[0]) / 2
            values[0], values[1] = -half, half


def gains(bag: EmbeddedBag, slide: Slide, unit: float, every_count: bool) -> dict[str, Any]:
    """Symmetric relevance gain of every ranking on one slide."""
    n, target = len(bag), bag.target
    ks = np.arange(1, n) if every_count else symmetric_counts(n)
    full = bag.full().numpy()
    found: dict[str, Any] = {"slide": slide.slide_id, "case": slide.case_id, "tiles": n,
                             "target": target, "full": float(log_odds(full, target)) * unit,
                             "gain": {}, "in probabilities": {}}  # fmt: skip
    for method, name in METHODS.items():
        # evidence of a model without pooling is the order of single tiles
        if name == ("evidence" if isinstance(bag.backbone, TransMIL) else "attention-rollout"):
            continue
        options: list[dict[str, int]] = [{}]
        if name == "integrated-gradients":
            options = [{"n_steps": STEPS}]
        if name == "random":
            n_orders = RANDOM_ORDERS["closed form" if every_count else "other"]
            options = [{"seed": seed} for seed in range(n_orders)]
        own = (rankings.score(name, bag.backbone, bag, **one).order for one in options)
        orders = [torch.from_numpy(order) for order in own]
        curves = [bag.curves(orders, ks.tolist(), way) for way in ("insert", "delete")]
        both = []
        for kept, left in zip(*curves, strict=True):
            probs = (kept.numpy(), left.numpy(), full)
            both.append(
                [symmetric_relevance_gain(ks, one[0], ks, one[1], float(one[2]), n)
                 for one in ([log_odds(p, target) * unit for p in probs],
                             [p[..., target] for p in probs])]
            )  # fmt: skip
        found["gain"][method], found["in probabilities"][method] = np.mean(both, axis=0).tolist()
    return found


def symmetric_counts(n: int) -> NDArray[np.int64]:
    """Counts between 1 and N - 1 as dense at one end as at the other.

    >>> symmetric_counts(8).tolist()
    [1, 2, 3, 4, 5, 6, 7]
    """
    spaced = np.concatenate([np.geomspace(1, n - 1, 8), np.linspace(1, n - 1, 7)])
    own = np.rint(spaced).astype(np.int64)
    return np.unique(np.concatenate([own, n - own]))


@ranking("squared-gradient", needs=("gradients", "target"))
def squared_gradient(bag: EmbeddedBag) -> Tensor:
    """Squared length of the gradient of the target's logit at the tile."""
    return logit_gradient(bag).double().square().sum(dim=-1)


@ranking("attention-rollout")
def attention_rollout(bag: EmbeddedBag) -> Tensor:
    r"""Attention of the CLS token to the tile through all layers.

    .. math:: s = e_\mathrm{CLS} \prod_{l = L}^{1} \tfrac12 (\bar A_l + I)

    with the attention matrices :math:`\bar A_l` averaged over heads.
    """
    model = bag.backbone
    assert isinstance(model, TransMIL)
    hidden, maps = torch.cat([model.cls[None], bag.tokens])[None], []
    for layer in model.layers:
        assert isinstance(layer, EncoderLayer)
        q, k, _ = layer.qkv(hidden)
        attention = torch.softmax(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, dim=-1)
        maps.append(attention.mean(dim=1)[0].double())
        hidden = layer(hidden)
    row = maps[-1].new_zeros(len(bag) + 1)
    row[0] = 1
    for attention in reversed(maps):
        row = (row @ attention + row) / 2
    return row[1:]


def print_and_write(cells: dict[Cell, list[list[dict[str, Any]]]]) -> None:
    """One row per cohort, output, model and method; one per pair of methods."""
    rows, pairs = [], []
    print("\n| cohort | output | model | seeds | " + " | ".join(METHODS) + " |")
    print("|" + "---|" * (4 + len(METHODS)))
    for cell, seeds in sorted(cells.items()):
        own = gain_table(seeds, "gain")
        upward = gain_table(seeds, "gain", upward=cell[1] != "class")
        likely = gain_table(seeds, "in probabilities")
        cases = [slide["case"] for slide in seeds[0]]
        methods = list(seeds[0][0]["gain"])
        shown = dict.fromkeys(METHODS, "")
        for place, (method, mean) in enumerate(
            zip(methods, mean_intervals(own.mean(axis=0), cases), strict=True)
        ):
            shown[method] = f"{mean.estimate:.2f} ({mean.low:.2f} to {mean.high:.2f})"
            row = (*cell, method, len(cases), len(set(cases)), len(seeds),
                   f"{mean.estimate:.4f}", f"{mean.low:.4f}", f"{mean.high:.4f}",
                   *([f"{one:.4f}" for one in own[:, :, place].mean(axis=1)] + 3 * [""])[:3],
                   f"{upward[:, :, place].mean():.4f}",
                   f"{likely[:, :, place].mean():.4f}")  # fmt: skip
            rows.append(dict(zip(COLUMNS, map(str, row), strict=True)))
        print("| " + " | ".join((*cell, str(len(seeds)), *shown.values())) + " |")
        first, second = zip(*itertools.combinations(range(len(methods)), 2), strict=True)
        gaps = own.mean(axis=0)[:, first] - own.mean(axis=0)[:, second]
        for a, b, gap in zip(first, second, mean_intervals(gaps, cases), strict=True):
            numbers = (f"{number:.4f}" for number in (gap.estimate, gap.low, gap.high))
            pair = (*cell, methods[a], methods[b], *numbers)
            pairs.append(dict(zip(PAIR_COLUMNS, pair, strict=True)))
    write_csv(APPENDIX / "relevance.csv", COLUMNS, rows)
    write_csv(APPENDIX / "relevance-pairs.csv", PAIR_COLUMNS, pairs)


def gain_table(seeds: Sequence[list[dict[str, Any]]], what: str, upward: bool = False) -> Floats:
    """Gains ``[seeds, slides, methods]``, or towards the upper side whatever the model says.

    Following the other side turns a signed ranking round, and the gain stays the same; the gain of
    an unsigned one changes its sign.
    """

    def one(slide: dict[str, Any], method: str) -> float:
        turned = upward and method in UNSIGNED and slide["target"] == 0
        return (-1.0 if turned else 1.0) * float(slide[what][method])

    return np.array([[[one(slide, m) for m in slide[what]] for slide in own] for own in seeds])


if __name__ == "__main__":
    main()
