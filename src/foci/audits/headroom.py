"""One ranking against another: saved tiles, paired counts, a test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from foci.audits.measured import Measured
from foci.audits.resampled import Resampled
from foci.metrics import msk_cond, paired_msk, percentile_interval, shi, wilcoxon
from foci.metrics.headroom import relative_saving
from foci.metrics.inputs import Floats


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
