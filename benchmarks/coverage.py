"""Does the 95 % interval of D hold the true D, and how often does the test reject a true D of 0?

Cohorts are simulated whose slides have d = +1, 0 or -1, one slide per patient or ten on average.
The true D is the population mean over patients of the patient's mean. Prints the table in
docs/statistics.md, and fails if the interval covers less than 90 % in any cell of it.

    python benchmarks/coverage.py [--cohorts 4000] [--draws 1000]
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.stats import binom

from foci.metrics import sign_flip_pvalue
from foci.metrics.answers import NOT_SUPERIOR
from foci.metrics.compare import SAME_WITHIN, patient_intervals

PATIENTS = (12, 24, 60, 200)
TRUE_D = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 0.87, 0.95)
TIES = {"none": 0.0, "many": 0.8}
"""Of the slides that are left when D of them are wins, the share of ties; half of the rest wins."""

OWN = 0.7  # chance that a slide shows its patient's own d; the square is the correlation of slides
LEAST = 0.90
ROUNDING = 1e-9


def main() -> None:
    """Simulate every cell, print one row per number of patients, of slides and of ties."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cohorts", type=int, default=4000, help="simulated in every cell")
    parser.add_argument("--draws", type=int, default=1000, help="of patients, for an interval")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    heads = ["patients", "slides", "ties", *(f"D = {d:g}" for d in TRUE_D), "better", "worse"]
    print("|", " | ".join(heads), "|")
    print("|" + "-|" * len(heads))
    lowest = 1.0
    for n in PATIENTS:
        for slides in (1, 10):
            for name, ties in TIES.items():
                covered = []
                for d in TRUE_D:
                    means = patients(rng, (n, options.cohorts), slides, d, ties)
                    low, high = patient_intervals(means, options.draws)
                    inside = (low <= d + ROUNDING) & (d <= high + ROUNDING)
                    covered.append(float(inside.mean()))
                    if d == 0:
                        false = rejections(means)
                lowest = min(lowest, *covered)
                cells = [f"{share:.3f}" for share in covered] + [f"{100 * r:.1f} %" for r in false]
                print("|", " | ".join([str(n), str(slides), name, *cells]), "|", flush=True)
    print(f"\nLowest coverage in the table: {lowest:.3f}.")
    for n in (*PATIENTS[:1], 16, 20, *PATIENTS[1:3]):
        print(f"Lowest over all D, {n} patients of one slide, exactly: {least_of_all(n):.3f}.")
    for n in PATIENTS:  # nine patients in ten are ahead a little, the tenth loses everything
        skewed = rng.choice([1 / 9, -1.0], p=[0.9, 0.1], size=(n, options.cohorts))
        better, worse = (100 * share for share in rejections(skewed))
        print(f"Skewed, {n} patients: {better:.1f} % better, {worse:.1f} % worse.")
    for n in PATIENTS:  # a random order has any place among ten others
        places = rng.integers(0, 11, size=(n, options.cohorts))
        low, high = patient_intervals(places / 5 - 1, options.draws)
        below, within = (high < NOT_SUPERIOR).mean(), (np.maximum(-low, high) <= SAME_WITHIN).mean()
        print(
            f"Random orders, {n} patients: {100 * below:.0f} % have an upper end below "
            f"{NOT_SUPERIOR:g}, {100 * within:.0f} % lie within {SAME_WITHIN:g}."
        )
    if lowest < LEAST:
        sys.exit(f"an interval covers less than {LEAST:g}")


def patients(
    rng: Generator, shape: tuple[int, int], slides: int, d: float, ties: float
) -> NDArray[np.float64]:
    """Patient means ``[C, M]`` of M cohorts.

    Patients have one slide, or a number of slides from a geometric distribution. Each has a d of
    its own, which a slide shows with probability ``OWN``; otherwise the slide is drawn alone.
    """
    tie, loss = ties * (1 - d), (1 - ties) * (1 - d) / 2
    win = 1 - tie - loss
    own = rng.choice([1.0, 0.0, -1.0], p=[win, tie, loss], size=shape)
    if slides == 1:
        return own
    n = rng.geometric(1 / slides, size=shape)
    shown = rng.binomial(n, OWN)
    wins = rng.binomial(n - shown, win)
    losses = rng.binomial(n - shown - wins, min(1.0, loss / (1 - win)))
    means: NDArray[np.float64] = (shown * own + wins - losses) / n
    return means


def rejections(means: NDArray[np.float64]) -> tuple[float, float]:
    """Shares of cohorts that the test calls better, and worse."""
    rejected = np.array([sign_flip_pvalue(cohort) <= 0.05 + ROUNDING for cohort in means.T])
    ahead = means.mean(axis=0) > 0
    return float((rejected & ahead).mean()), float((rejected & ~ahead).mean())


def least_of_all(n: int) -> float:
    """Smallest coverage over 1,001 values of D, without simulation, where d has two values only.

    The number of wins is binomial then; the other patients all lose, or all tie.
    """
    wins, d, found = np.arange(n + 1), np.linspace(0, 1, 1001)[:, None], []
    for other, win in ((-1.0, (d + 1) / 2), (0.0, d)):
        means = np.where(np.arange(n)[:, None] < wins, 1.0, other)
        low, high = patient_intervals(means, 2000)
        inside = (low <= d + ROUNDING) & (d <= high + ROUNDING)
        found.append((binom.pmf(wins, n, win) * inside).sum(axis=1).min())
    return float(min(found))


if __name__ == "__main__":
    main()
