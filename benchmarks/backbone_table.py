"""All seven classifiers trained through the command line, three seeds each.

On the embedded cohort, with ``--tiles FILE`` on bags of real lung tiles with known witnesses, and
with ``--data FILE`` on real lung and breast slides (LUAD against LUSC, IDC against the rest, split
by patient). Prints the Markdown table of docs/backbones.md; the trained folders
COHORT-CLASSIFIER-PRESET-SEED serve ``efficiency_table.py`` and ``real_study.py`` too. ``--only``
takes further classifiers, as ``clam-mb`` or ``abmil:official``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import foci
import hipt_cohort
import witness_cohort

COMMON = ["--epochs", "20"]
SMALL = [
    *("--set", "d=128", "--set", "heads=4", "--set", "depth=2", "--set", "hidden=256"),
    *("--set", "head_hidden=64", "--set", "dropout=0.2", "--weight-decay", "0.1"),
]  # fmt: skip
QUICK: dict[str, list[str]] = {
    "transmil": SMALL,
    "abmil": [],
    "clam-sb": [],
    "attrimil": ["--set", "d=128", "--set", "scorer_hidden=64"],
    "acmil": ["--set", "d=128"],
    "asmil": [],
    "mhim-mil": ["--set", "d=128", "--set", "hidden=64", "--set", "head_hidden=64"],
}

NARROW = {
    "lc25000": ["abmil", "abmil:official", "clam-sb", "clam-mb", "asmil", "mean-mil", "max-mil"]
}
"""Cohorts of wide features and classifiers that are trained there with ``d=128``, to save time."""


def main() -> None:
    """Train, collect, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, help="HDF5 file of real region features")
    parser.add_argument("--tiles", type=Path, help="HDF5 file of real tiles with their classes")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=list(QUICK))
    parser.add_argument("--out", type=Path, default=Path(tempfile.mkdtemp()))
    options = parser.parse_args()
    cohorts = {"embedded": options.out / "embedded"}
    if not cohorts["embedded"].exists():
        subprocess.run(
            [sys.executable, "-m", "foci", "demo", cohorts["embedded"], "--cohort-only"], check=True
        )
    if options.tiles:
        cohorts["lc25000"] = witness_cohort.make_cohort(options.tiles, options.out / "lc25000")
    if options.data:
        for task in ("lung", "brca"):
            cohorts[task] = hipt_cohort.make_cohort(options.data, task, options.out / task)
    print("| classifier | extra options | " + " | ".join(f"AUC, {c}" for c in cohorts) + " |")
    print("|---|---|" + "---|" * len(cohorts))
    for name in options.only:
        cells = [cell(name, cohort, options) for cohort in cohorts.values()]
        extra = " ".join(QUICK.get(name, [])) or "none"
        print(f"| {name} | `{extra}` | " + " | ".join(cells) + " |", flush=True)


def cell(name: str, cohort: Path, options: argparse.Namespace) -> str:
    """Test AUC of every seed, and their mean."""
    aucs = [run(name, cohort, seed, options.out) for seed in range(options.seeds)]
    return f"{statistics.mean(aucs):.3f} ({', '.join(f'{auc:.3f}' for auc in aucs)})"


def options_of(name: str, cohort: Path) -> list[str]:
    """Options of ``foci train`` for one classifier on one cohort."""
    narrow = ["--set", "d=128"] if name in NARROW.get(cohort.name, []) else []
    return [*COMMON, *QUICK.get(name, []), *narrow]


def run(name: str, cohort: Path, seed: int, out: Path) -> float:
    """One run of ``foci train``."""
    kind, _, preset = name.partition(":")
    preset = preset or foci.backbones.presets(kind)[0]
    folder = out / f"{cohort.name}-{kind}-{preset}-{seed}"
    if not (folder / "backbone.json").exists():
        features = next(p for p in cohort.iterdir() if p.is_dir())
        command = [sys.executable, "-m", "foci", "train", kind, "--features", str(features),
                   "--labels", str(cohort / "cohort.csv"), "--out", str(folder),
                   "--seed", str(seed), "--preset", preset, *options_of(name, cohort)]  # fmt: skip
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    facts = json.loads((folder / "backbone.json").read_text())
    return float(facts["metrics"]["test"]["auc"])


if __name__ == "__main__":
    main()
