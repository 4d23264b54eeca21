"""Write the two study files behind docs/results.md, of profile ``paper`` and profile ``foci``.

Takes the folder in which ``backbone_table.py --data FILE --tiles FILE`` left its cohorts and its
classifiers. Then ``foci study run OUT/paper`` and ``foci study tables OUT/paper``, and
the same for ``foci``; ``study_rows.py OUT`` writes the files of the appendix. That on the cohorts
themselves, ``docs/appendix/cohorts.csv``, is written here.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from backbone_table import QUICK
from foci.bags import Cohort
from foci.bags.tables import write_csv

FACTS = Path(__file__).parents[1] / "docs/appendix/cohorts.csv"

COHORTS = {"nsclc": "lung", "brca": "brca", "lc25000": "lc25000"}
"""Name in the study, and folder."""

SHORT = {"schedule.epochs": 10, "schedule.warmup": 1}
"""The paper trains its selectors for 30 epochs, 5 of them to warm up."""

ON_LUNG = {"backbones": ["transmil"], "cohorts": ["nsclc"]}
SWEEPS: dict[str, Any] = {
    "adaptive": {"recipes": ["paper-adaptive"], **ON_LUNG},
    "gate": {"recipes": ["paper-soft"], **ON_LUNG},
    "losses": {"recipes": ["no-suff", "no-excl", "no-contig"], "seeds": [0], **ON_LUNG},
    "freeze": {"recipes": ["freeze-only"], "seeds": [0], **ON_LUNG},
    "n_cap": {
        "values": [256], "refit": False, "backbones": ["transmil"], "cohorts": ["lc25000"],
    },
    "joint": {"epochs": 2, "seeds": [0], **ON_LUNG},
}  # fmt: skip


def main() -> None:
    """Write ``paper/study.yaml`` and ``foci/study.yaml``."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "folder", type=lambda given: Path(given).resolve(),
        help="holds lung, lung-abmil-paper-0 and so on",
    )  # fmt: skip
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    paper = study("paper", options)
    paper["audit"] |= {"recipe_settings": SHORT, "random_orders": 5}
    paper |= {"sweeps": SWEEPS, "efficiency": {"cohort": "lc25000", "slides": 10, "repeats": 3}}
    for made in (paper, study("foci", options)):
        folder = options.out / made["profile"]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "study.yaml").write_text(yaml.safe_dump(made, sort_keys=False))
    rows = [facts(name, options.folder / folder) for name, folder in COHORTS.items()]
    write_csv(FACTS, list(rows[0]), rows)


def facts(name: str, folder: Path) -> dict[str, str]:
    """Slides in every split, the size of the test slides, and how much of them 32 tiles are."""
    cohort = Cohort.read(folder / "features", folder / "cohort.csv")
    splits = Counter(slide.split for slide in cohort)
    bags = [cohort.store.bag(slide) for slide in cohort if slide.split == "test"]
    sizes = np.array([len(bag) for bag in bags])
    return {
        "cohort": name,
        **{split: str(splits[split]) for split in ("train", "val", "test")},
        "features of a tile": str(bags[0].features.shape[1]),
        "median tiles, test": f"{np.median(sizes):g}",
        "32 tiles of a slide (%)": f"{100 * np.minimum(32 / sizes, 1).mean():.2f}",
    }


def study(profile: str, options: argparse.Namespace) -> dict[str, Any]:
    """What both studies share."""
    cohorts = {name: options.folder / folder for name, folder in COHORTS.items()}
    models = {
        backbone: {
            "models": {
                name: {seed: f"{options.folder / folder}-{backbone}-paper-{seed}"
                       for seed in options.seeds}
                for name, folder in COHORTS.items()
            }
        }
        for backbone in QUICK
    }  # fmt: skip
    return {
        "format": 1,
        "name": f"Lung, breast and LC25000, profile {profile}",
        "profile": profile,
        "seeds": options.seeds,
        "cohorts": {
            name: {"features": str(folder / "features"), "labels": str(folder / "cohort.csv")}
            for name, folder in cohorts.items()
        },
        "backbones": models,
        "audit": {"rankings": ["native", "selector", "random", "evidence"], "n_boot": 500},
        "sweeps": {},
        "efficiency": None,
    }


if __name__ == "__main__":
    main()
