"""One ranking against another: saved tiles, paired counts, a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from foci.audits.analysis.bootstrap import Resampled
from foci.audits.analysis.per_slide import Measured
from foci.audits.analysis.views import Population
from foci.audits.settings import Reading
from foci.metrics import (
    captured_headroom,
    fallback_share,
    kaplan_meier,
    mean_drops,
    msk_cond,
    paired_msk,
    percentile_interval,
    reach_split,
    restricted_mean,
    shi,
    wilcoxon,
)
from foci.metrics.cohort.headroom import relative_saving
from foci.metrics.inputs import Floats, defined_mean


def saving(
    base: Measured, found: Measured, drawn_base: Resampled, drawn: Resampled, level: float
) -> dict[str, Any]:
    """SHI on means over the seeds, its paired patient interval, and SHI of every seed.

    A seed that reaches no slide has no MSK and is left out of the mean.
    """
    before = [count for count in map(msk_cond, base.msk) if not np.isnan(count)]
    after = [msk_cond(row) for row in found.msk]
    defined = [count for count in after if not np.isnan(count)]
    if not before or not defined:
        return {"estimate": None, "low": None, "high": None, "seeds": [None] * len(after)}
    draws = relative_saving(drawn_base.msk_cond, drawn.msk_cond)
    interval = percentile_interval(shi(before, defined), draws, level)
    seeds = [np.nan if np.isnan(count) else shi(before, count) for count in after]
    return {
        "estimate": interval.estimate,
        "low": interval.low,
        "high": interval.high,
        "seeds": seeds,
    }


def paired(base: Measured, found: Measured) -> dict[str, Any]:
    """MSK on the slides that both rankings reach with every one of their seeds."""
    return asdict(paired_msk(base.msk.mean(axis=0), found.msk.mean(axis=0)))


def signed_rank(base: Measured, found: Measured, cases: Sequence[str]) -> dict[str, Any]:
    """Wilcoxon's test on the restricted counts, each patient's slides averaged to one pair."""
    result = wilcoxon(per_patient(base.restricted, cases), per_patient(found.restricted, cases))
    return {"statistic": result.statistic, "pvalue": result.pvalue, "n_pairs": result.n_pairs}


def per_patient(values: Floats, cases: Sequence[str]) -> Floats:
    """Mean of ``[R, S]`` over the seeds and over each patient's slides, patients sorted.

    >>> per_patient(np.array([[1.0, 3.0, 8.0]]), cases=["P2", "P2", "P1"]).tolist()
    [8.0, 2.0]
    """
    case = np.unique(np.asarray(cases), return_inverse=True)[1]
    means: Floats = np.bincount(case, weights=values.mean(axis=0)) / np.bincount(case)
    return means


NATIVE, RANDOM, GREEDY = "native", "random", "greedy-insertion"


def numbers(
    name: str,
    measured: Mapping[str, Measured],
    drawn: Mapping[str, Resampled],
    population: Population,
    reading: Reading,
) -> dict[str, Any]:
    """All numbers of a ranking; NaN where one is not defined.

    Args:
        name: The ranking.
        measured: Every ranking of the view.
        drawn: The same, patients resampled.
        population: The slides of the view.
        reading: Threshold, budget, level.
    """
    found, draws = measured[name], drawn[name]
    level = reading.level
    counts = [msk_cond(row) for row in found.msk]
    stable = [restricted_mean(row, reading.k_max) for row in found.stable]
    fallback = [fallback_share(*rows) for rows in zip(found.msk, found.stable, strict=True)]
    survival = kaplan_meier(found.msk.ravel(), reading.k_max)
    mean_drop, n_dropped = mean_drops(found.drops)
    result = {
        "msk_cond": interval(float(defined_mean(np.array(counts))), draws.msk_cond, level),
        "msk_cond_seeds": counts,
        **_over_slides("restricted", found.restricted, draws.restricted, level),
        **_over_slides("reach", found.reached, draws.reach, level),
        **_reach_by_correctness(found, population),
        **_over_slides("aukc", found.aukc, draws.aukc, level),
        "stable_restricted": np.mean(stable),
        "fallback": defined_mean(np.array(fallback)),
        "specific": found.specific.mean(),
        **_over_slides("faithfulness", found.faithfulness, draws.faithfulness, level),
        "drops": {
            "ks": reading.deletion,
            "mean": mean_drop,
            "n_slides": n_dropped,
        },
        "km": {"ks": survival.ks.astype(np.int64), "survival": survival.survival},
        "mean_curve": vars(found.curve),
        **_against_others(name, measured, drawn, population, level),
    }
    if GREEDY in measured:
        result["captured"] = _captured(name, measured)
    return result


def interval(estimate: float, draws: Floats, level: float) -> dict[str, float]:
    """Estimate, low and high."""
    found = percentile_interval(estimate, draws, level)
    return {"estimate": found.estimate, "low": found.low, "high": found.high}


def _over_slides(name: str, values: Floats, draws: Floats, level: float) -> dict[str, Any]:
    """A mean over slides with its interval, and the same of every seed."""
    seeds = defined_mean(values, axis=1)
    estimate = float(defined_mean(seeds))
    return {name: interval(estimate, draws, level), f"{name}_seeds": seeds}


def _reach_by_correctness(found: Measured, population: Population) -> dict[str, Any]:
    known = population.labels >= 0
    if not known.any():
        return {"reach_correct": None, "reach_wrong": None}
    predictions, labels = population.predictions[known], population.labels[known]
    splits = [reach_split(row[known], predictions, labels) for row in found.msk]
    return {
        "reach_correct": np.mean([split.correct for split in splits]),
        "reach_wrong": np.mean([split.wrong for split in splits]),
    }


def _against_others(
    name: str,
    measured: Mapping[str, Measured],
    drawn: Mapping[str, Resampled],
    population: Population,
    level: float,
) -> dict[str, Any]:
    found = measured[name]
    result: dict[str, Any] = {}
    for key, base in (("shi_native", NATIVE), ("shi_random", RANDOM)):
        compared = base != name and base in measured
        result[key] = (
            saving(measured[base], found, drawn[base], drawn[name], level) if compared else None
        )
    compared = name != NATIVE and NATIVE in measured
    native = measured[NATIVE] if compared else found
    result["paired"] = paired(native, found) if compared else None
    result["wilcoxon"] = signed_rank(native, found, population.cases) if compared else None
    return result


def _captured(name: str, measured: Mapping[str, Measured]) -> float | None:
    if NATIVE not in measured or name in (NATIVE, GREEDY):
        return None
    base, foci, greedy = (measured[n].restricted.mean(axis=1) for n in (NATIVE, name, GREEDY))
    return captured_headroom(base, foci, greedy)
