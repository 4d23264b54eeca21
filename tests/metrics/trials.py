"""Random arguments for every metric, paired with its slow reference."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from foci import metrics
from tests.metrics import references


def two_rankings(rng: Generator) -> dict[str, Any]:
    first, second = rng.integers(0, 5, size=(2, rng.integers(1, 9))).astype(float)
    return {"first": first, "second": second}


def two_rankings_at_k(rng: Generator) -> dict[str, Any]:
    drawn = two_rankings(rng)
    return drawn | {"k": int(rng.integers(1, len(drawn["first"]) + 1))}


def marked(rng: Generator, *, at_k: bool) -> dict[str, Any]:
    n = int(rng.integers(1, 7))
    truth = rng.permutation(np.arange(n) < rng.integers(1, n + 1)).astype(int)
    drawn = {"scores": rng.integers(0, 4, size=n).astype(float), "truth": truth}
    return drawn | ({"k": int(rng.integers(1, n + 1))} if at_k else {})


def regions(rng: Generator) -> dict[str, Any]:
    n = int(rng.integers(1, 12))
    lesions = rng.integers(0, 4, size=n)
    lesions[rng.integers(n)] = 1 + rng.integers(3)
    scores = rng.integers(0, 4, size=n).astype(float)
    return {"scores": scores, "lesions": lesions, "false_tiles": int(rng.integers(0, n + 1))}


@dataclass(frozen=True)
class Trial:
    draw: Callable[[Generator], dict[str, Any]]
    reference: Callable[..., Any]


def both_ways(rng: Generator) -> dict[str, Any]:
    """Outputs on and without the first tiles, at some of the counts; some curves end early."""
    n = int(rng.integers(1, 9))
    ks = {way: np.flatnonzero(rng.random(n - 1) < 0.7) + 1 for way in ("kept", "left")}
    if n > 1 and rng.random() < 0.8:
        ks["kept"], ks["left"] = np.union1d(ks["kept"], [1]), np.union1d(ks["left"], [n - 1])
    drawn = {f"{way}_ks": own for way, own in ks.items()}
    drawn |= {way: rng.normal(size=len(own)) for way, own in ks.items()}
    return drawn | {"whole": float(rng.normal()), "n_tiles": n}


def grid(rng: Generator) -> NDArray[np.int64]:
    return np.sort(rng.choice(np.arange(1, 60), size=rng.integers(1, 8), replace=False))


def table(rng: Generator, *shape: int) -> NDArray[np.float64]:
    """Rows that sum to 1, in coarse steps so that ties and exact thresholds occur."""
    weights = rng.integers(0, 10, size=shape) ** 2 + 1.0
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def curve(rng: Generator) -> dict[str, Any]:
    ks, n_classes = grid(rng), int(rng.integers(2, 5))
    return {
        "probs": table(rng, len(ks), n_classes),
        "ks": ks,
        "target": int(rng.integers(n_classes)),
    }


def at_kappa(rng: Generator) -> dict[str, Any]:
    """A curve that leans towards its target, so that thresholds are crossed and lost again."""
    drawn = curve(rng)
    leaning = drawn["probs"].copy()
    leaning[:, drawn["target"]] *= 4
    leaning /= leaning.sum(axis=1, keepdims=True)
    return drawn | {"probs": leaning, "kappa": float(rng.choice([0.3, 0.5, 0.7]))}


def decisive(rng: Generator) -> dict[str, Any]:
    """Both directions at counts of their own that share at least one; deletion may start at 0."""
    drawn = at_kappa(rng)
    shared = rng.choice(drawn["ks"], size=rng.integers(1, len(drawn["ks"]) + 1), replace=False)
    others = rng.choice(np.append(np.arange(0, 1), np.arange(60, 70)), size=2, replace=False)
    delete_ks = np.sort(np.concatenate([shared, others]))
    return {
        "insert_probs": drawn["probs"],
        "insert_ks": drawn["ks"],
        "delete_probs": table(rng, len(delete_ks), drawn["probs"].shape[1]),
        "delete_ks": delete_ks,
        "target": drawn["target"],
        "kappa": drawn["kappa"],
        "beta": [None, 0.2][rng.integers(2)],
    }


def counts(rng: Generator, n: int | None = None) -> NDArray[np.float64]:
    values = rng.integers(1, 40, size=n or rng.integers(1, 15)).astype(float)
    values[rng.random(len(values)) < 0.3] = np.nan
    return values


def minima(rng: Generator) -> dict[str, Any]:
    """Proven minima and the counts of a ranking, none of which is below its minimum."""
    k = counts(rng)
    least = np.ceil(np.nan_to_num(k, nan=20.0) * rng.uniform(0.1, 1.0, size=len(k)))
    least[rng.random(len(k)) < 0.2] = np.nan
    return {"k_star": least, "k": k, "k_max": int(rng.integers(10, 40))}


def censored(rng: Generator) -> dict[str, Any]:
    msks = counts(rng)
    each = np.minimum(32, rng.integers(1, 60, size=len(msks)))
    return {"msks": msks, "k_max": 32 if rng.random() < 0.5 else each}


def against_orders(rng: Generator) -> dict[str, Any]:
    n_slides = int(rng.integers(1, 12))
    orders = np.stack([counts(rng, n_slides) for _ in range(int(rng.integers(1, 5)))])
    drawn = {"a": counts(rng, n_slides), "b": orders, "tie": float(rng.integers(0, 3))}
    cases = rng.integers(0, 5, size=n_slides)
    return drawn | ({"cases": cases} if rng.random() < 0.7 else {})


def crossings(rng: Generator) -> dict[str, Any]:
    first = counts(rng)
    later = first + rng.integers(0, 2, size=len(first)) * 3
    later[rng.random(len(first)) < 0.2] = np.nan
    return {"msks": first, "stable_msks": later}


def classified(rng: Generator) -> dict[str, Any]:
    msks = counts(rng)
    guess, true = rng.integers(0, 3, size=(2, len(msks)))
    return {"msks": msks, "predictions": guess, "labels": true}


def seeds(rng: Generator, *names: str) -> dict[str, Any]:
    values = rng.uniform(1, 20, size=(len(names), int(rng.integers(1, 5))))
    return dict(zip(names, values, strict=True))


def with_full(rng: Generator, name: str = "probs") -> dict[str, Any]:
    drawn = curve(rng)
    drawn["full"] = table(rng, drawn["probs"].shape[1])
    return drawn | {name: drawn.pop("probs")}


def drops(rng: Generator) -> dict[str, Any]:
    ks = np.array([1, 9, 33, 60])[: rng.integers(2, 5)]
    return {"ks": ks, "drops": rng.uniform(-1, 1, size=len(ks)), "k_max": 64}


def slide_drops(rng: Generator) -> dict[str, Any]:
    n_tiles = rng.integers(1, 600, size=int(rng.integers(1, 6)))
    values = rng.uniform(-1, 1, size=(len(n_tiles), 5))
    values[np.array(references.PAPER_KS) >= n_tiles[:, None]] = np.nan
    return {"drops": values, "n_tiles": n_tiles}


def slides(rng: Generator) -> dict[str, Any]:
    reached = [metrics.Specificity(*rng.choice([1, 2, 3, None], size=2), 0) for _ in range(6)]
    return {"slides": reached}


def predictions(rng: Generator) -> dict[str, Any]:
    n_classes = int(rng.integers(2, 5))
    labels = rng.permutation(np.arange(12) % n_classes)
    return {"probs": table(rng, 12, n_classes), "labels": labels}


def selections(rng: Generator) -> dict[str, Any]:
    """Curves that end at 40 tiles or with the bag, mostly revealed at the count that is kept."""
    drawn = predictions(rng)
    full, n_tiles = drawn.pop("probs"), rng.integers(1, 2000, size=12)
    ks = np.stack([np.arange(1, 41), np.arange(1 + (rng.random() < 0.2), 81, 2)])
    rows = rng.integers(0, 2, size=12) if rng.random() < 0.2 else np.zeros(12, dtype=int)
    probs = table(rng, 12, 40, full.shape[1])
    k = [None, 32, 40, 50][rng.integers(4)]
    return drawn | {"probs": probs, "ks": ks[rows], "n_tiles": n_tiles, "full": full, "k": k}


def survival(rng: Generator) -> dict[str, Any]:
    n = int(rng.integers(2, 12))
    event = rng.integers(0, 2, size=n)
    time = rng.integers(1, 8, size=n).astype(float)
    event[0], time[0], time[1] = 1, 1.0, 9.0  # one pair can be compared
    return {"risk": rng.integers(0, 4, size=n).astype(float), "time": time, "event": event}


def regression(rng: Generator) -> dict[str, Any]:
    predicted, value = rng.normal(size=(2, int(rng.integers(2, 9))))
    return {"predicted": predicted, "value": value}


def share(slides: list[metrics.Specificity]) -> float:
    wins = [
        slide.target_msk is not None and slide.target_msk < (slide.rival_msk or np.inf)
        for slide in slides
    ]
    return references.mean([float(win) for win in wins])


TRIALS: dict[str, Trial] = {
    "msk": Trial(at_kappa, references.msk),
    "reach": Trial(lambda rng: {"msks": counts(rng)}, references.reach),
    "msk_cond": Trial(lambda rng: {"msks": counts(rng)}, references.msk_cond),
    "aukc": Trial(lambda rng: curve(rng) | {"n_tiles": 60}, references.aukc),
    "stable_msk": Trial(at_kappa, references.stable_msk),
    "decisive_k": Trial(decisive, references.decisive_k),
    "efficiency": Trial(minima, references.efficiency),
    "carried_share": Trial(
        lambda rng: {"counts": np.stack([counts(rng, 9) for _ in range(3)]), "ks": grid(rng)},
        references.carried_share,
    ),
    "stable_decisive_k": Trial(decisive, partial(references.decisive_k, stable=True)),
    "geometric_mean_ratio": Trial(
        lambda rng: {"a": counts(rng, 9), "b": counts(rng, 9)},
        references.geometric_mean_ratio,
    ),
    "net_win_share": Trial(against_orders, references.net_win_share),
    "fallback_share": Trial(crossings, references.fallback_share),
    "reach_split": Trial(classified, references.reach_split),
    "restricted_mean": Trial(censored, references.restricted_mean),
    "kaplan_meier": Trial(censored, references.kaplan_meier),
    "paired_msk": Trial(
        lambda rng: {"base": counts(rng, 9), "foci": counts(rng, 9)}, references.paired_msk
    ),
    "shi": Trial(lambda rng: seeds(rng, "base", "foci"), references.shi),
    "shi_against_random": Trial(
        lambda rng: seeds(rng, "random", "foci"), lambda random, foci: references.shi(random, foci)
    ),
    "captured_headroom": Trial(
        lambda rng: seeds(rng, "base", "foci", "greedy"), references.captured_headroom
    ),
    "deletion_drop": Trial(with_full, references.deletion_drop),
    "faithfulness_auc": Trial(drops, references.faithfulness_auc),
    "paper_faithfulness": Trial(
        lambda rng: {"drops": slide_drops(rng)["drops"]}, references.paper_faithfulness
    ),
    "symmetric_relevance_gain": Trial(both_ways, references.symmetric_relevance_gain),
    "slide_faithfulness": Trial(slide_drops, references.slide_faithfulness),
    "seed_spread": Trial(lambda rng: seeds(rng, "values"), references.seed_spread),
    "specificity": Trial(lambda rng: with_full(rng) | {"kappa": 0.5}, references.specificity),
    "specific_share": Trial(slides, share),
    "auc": Trial(predictions, references.auc),
    "c_index": Trial(survival, references.c_index),
    "r_squared": Trial(regression, references.r_squared),
    "selected_only_auc": Trial(selections, references.selected_only_auc),
    "jaccard_at_k": Trial(two_rankings_at_k, references.jaccard_at_k),
    "spearman": Trial(two_rankings, references.spearman),
    "precision_at_k": Trial(lambda rng: marked(rng, at_k=True), references.precision_at_k),
    "froc": Trial(regions, references.froc),
    "average_precision": Trial(lambda rng: marked(rng, at_k=False), references.average_precision),
}
