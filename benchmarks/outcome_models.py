"""Models of a number and of a risk beside the classifiers of ``backbone_table.py``.

``SOURCE`` holds its cohorts; ``OUT/regression`` and ``OUT/cox`` get cohorts with the same slides,
a label table of numbers or of times, and folders COHORT-MODEL-paper-SEED for
``relevance_table.py``. The embedded cohort is planted anew, as ``foci demo --output`` plants it.
No follow-up is known of the others, so theirs is drawn, from a *severity* g between -1 and 1:

    value = 50 + 20 g + noise,    hazard at time t = hazard_0(t) exp(2.5 g),  a fifth censored

On bags of tiles g grows with the share of witnesses (0 to 3 %) and the noise is small (2). On lung
slides g is the class, LUSC +1 and LUAD -1, and the noise is 20: what the model has to find there is
tissue, and no function of the features was planted that a method could have an advantage with.

TransMIL is trained for 10 epochs instead of 20, to save time.

    python benchmarks/outcome_models.py SOURCE OUT [--seeds 1] [--only abmil]
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from backbone_table import options_of
from foci.bags.tables import write_csv
from foci.demo import make

NOISE = {"lc25000": 2.0, "lung": 20.0}
COLUMNS = {
    "regression": ["--value", "score"],
    "cox": ["--time", "days", "--event", "died"],
}
"""Options of ``foci train`` that name the columns of an output."""


def main() -> None:
    """Make the cohorts, then train what is not trained yet."""
    parser = argparse.ArgumentParser()
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=["abmil", "transmil"])
    options = parser.parse_args()
    for seed in range(options.seeds):
        for model in options.only:
            for output in COLUMNS:
                for cohort in ("lung", "embedded", "lc25000"):
                    train(make_cohort(options.source, options.out / output, cohort), model, seed)


def make_cohort(source: Path, folder: Path, cohort: str) -> Path:
    """The cohort with outcomes of its own."""
    out = folder / cohort
    if (out / "cohort.csv").exists():
        return out
    if cohort == "embedded":
        return make(out, output="cox" if folder.name == "cox" else "regression")
    with (source / cohort / "cohort.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if cohort == "lc25000":
        truth = pq.read_table(source / cohort / "truth.parquet").to_pandas()
        share = truth.groupby("slide_id")["witness"].mean()
        severity = {row["case_id"]: share[row["slide_id"]] / 0.015 - 1 for row in rows}
    else:
        severity = {row["case_id"]: 1.0 if row["label"] == "LUSC" else -1.0 for row in rows}
    rng = np.random.default_rng(0)
    known = {case: outcome(g, NOISE[cohort], rng) for case, g in severity.items()}
    table = [
        {key: row[key] for key in ("slide_id", "case_id", "split")} | known[row["case_id"]]
        for row in rows
    ]
    out.mkdir(parents=True, exist_ok=True)
    (out / "features").symlink_to((source / cohort / "features").resolve())
    write_csv(out / "cohort.csv", list(table[0]), table)
    return out


def outcome(g: float, noise: float, rng: np.random.Generator) -> dict[str, str]:
    """Number, time and event of a patient: Weibull times, as in the demo."""
    score = 50 + 20 * g + noise * rng.normal()
    death = 600 * (rng.exponential() * np.exp(-2.5 * g)) ** 0.25
    last = rng.exponential(3000)
    days, died = max(1, min(death, last)), int(death <= last)
    return {"score": f"{score:.2f}", "days": f"{days:.0f}", "died": str(died)}


def train(cohort: Path, model: str, seed: int) -> None:
    """One run of ``foci train``, with the widths and epochs of the classifiers."""
    output, folder = cohort.parent.name, cohort.parent / f"{cohort.name}-{model}-paper-{seed}"
    if (folder / "backbone.json").exists():
        return
    (features,) = cohort.glob("features*")
    epochs = ["--epochs", "10"] if model == "transmil" else []  # the last one counts
    command = ["train", model, "--features", str(features), "--labels", str(cohort / "cohort.csv"),
               "--out", str(folder), "--output", output, *COLUMNS[output],
               "--seed", str(seed), "--preset", "paper",
               *options_of(model, cohort), *epochs]  # fmt: skip
    subprocess.run([sys.executable, "-m", "foci", *command], check=True)


if __name__ == "__main__":
    main()
