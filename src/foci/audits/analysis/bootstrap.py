"""Bootstrap over patients, with the same draws for all rankings of a view (paired)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from foci.audits.analysis.slides.per_slide import SlideMetrics
from foci.metrics import case_means
from foci.metrics.inputs import Floats, defined_mean
from foci.metrics.stats import draws_between


@dataclass(frozen=True, eq=False)
class Resampled:
    """Bootstrap means of one ranking, ``[B]`` each: one value per draw, none of one patient.

    Attributes:
        msk_cond: Conditional MSK, averaged over the seeds.
        restricted: Restricted mean K.
        reach: Share of slides that reach.
        aukc: Area under the K-curve.
        faithfulness: Faithfulness AUC.
    """

    msk_cond: Floats
    restricted: Floats
    reach: Floats
    aukc: Floats
    faithfulness: Floats


def resample(
    rankings: Sequence[SlideMetrics], cases: Sequence[str], n_boot: int
) -> dict[str, Resampled]:
    r"""Resample patients and recompute every mean, with the same draws for all rankings.

    The conditional MSK is a ratio, so each seed has its own column and the mean over the seeds is
    taken per draw, as for the estimate:

    .. math:: \overline{\mathrm{MSK}}^{(b)} = R^{-1} \sum_r
       \frac{\sum_s w_s^{(b)} \mathrm{MSK}_{r,s}}{\sum_s w_s^{(b)}}
       \quad \text{over the slides that seed } r \text{ reaches}

    The other means run over all slides, so the seeds are averaged before the slides. One patient
    leaves nothing to draw: then there are no draws.
    """
    columns, ends = [], []
    for own in rankings:
        over_seeds = [
            defined_mean(values, axis=0)
            for values in (own.restricted, own.reached, own.aukc, own.faithfulness)
        ]
        columns += [*over_seeds, *own.msk]
        ends.append(len(columns))
    draws = draws_between(case_means(np.column_stack(columns), cases, n_boot), cases)
    drawn = {}
    for own, part in zip(rankings, np.split(draws, ends[:-1], axis=1), strict=True):
        restricted, reach, aukc, faithfulness = part[:, :4].T
        msk_cond = defined_mean(part[:, 4:], axis=1)
        drawn[own.ranking] = Resampled(msk_cond, restricted, reach, aukc, faithfulness)
    return drawn
