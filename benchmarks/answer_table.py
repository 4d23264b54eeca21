"""What an audit answers to "Can I believe the map?", for every classifier of a folder.

Takes folders of ``foci train`` called COHORT-NAME-PRESET-SEED beside the folders of their cohorts
(``backbone_table.py`` trains such), audits them with the rankings that question 1 rests on, and
prints the rows of docs/appendix/answers.csv. D is against random orders, p against content-free
maps. "Before" is the answer of a study under earlier rules, for all of its seeds together, from
docs/appendix/study-foci.csv: equal numbers of sure slides show that it is the same classifier.

    python benchmarks/answer_table.py FOLDER [--only 'lung-*-0']
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import torch

from foci.audits import run as audit_run
from foci.audits.audit import StoredAudit
from foci.audits.records import AxisComparison
from foci.audits.settings import AuditSettings
from foci.audits.sources import open_sources
from foci.bags import Cohort

STUDY = Path(__file__).parents[1] / "docs/appendix/study-foci.csv"
COHORTS = {"lung": "TCGA lung", "lc25000": "LC25000 bags"}
HEAD = (
    "classifier", "sure slides before", "now", "answer before", "now", "D, sufficiency",
    "D, necessity", "p", "what the audit says",
)  # fmt: skip


def main() -> None:
    """Audit what has not been audited yet, one row each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", default=["*-*-*-[0-9]"], help="patterns of folders")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"| {' | '.join(HEAD)} |\n|{'-|' * len(HEAD)}")
    for model in sorted({one for glob in options.only for one in options.folder.glob(glob)}):
        if (model / "backbone.json").exists():
            print(row(model, audited(model, options.folder)), flush=True)


def audited(model: Path, folder: Path) -> StoredAudit:
    """The audit of a classifier, with the rankings that question 1 rests on."""
    cohort = folder / model.name.split("-", 1)[0]
    (features,) = cohort.glob("features*")
    sources = open_sources(model, Cohort.read(features, cohort / "cohort.csv"))
    settings = AuditSettings(rankings=("native", "evidence", "random"))
    return audit_run.run(sources, settings, folder / "audits" / model.name)


def row(model: Path, audit: StoredAudit) -> str:
    """One row of the table."""
    answers = audit.summary.answers
    found, null = answers.map.comparison, answers.map.null
    axes = (None, None) if found is None else (found.sufficiency, found.necessity)
    p = "" if null is None else f"{null.pvalue:.3f}"
    sure, before = earlier(model.name)
    cells = [sure, str(answers.n_decided), before, answers.map.answer]
    cells += [*(difference(axis) for axis in axes), p, answers.map.sentences[0]]
    return f"| {model.name} | {' | '.join(cells)} |"


def earlier(name: str) -> tuple[str, str]:
    """Sure slides and answers of the study under earlier rules; empty where it had no such."""
    cohort, classifier, seed = name.split("-", 1)[0], name.split("-", 1)[1], int(name[-1])
    with STUDY.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            own = classifier.startswith(f"{row['classifier'].lower()}-paper")
            if row["cohort"] == COHORTS.get(cohort) and own:
                sure = row["decided slides"].split(", ")[seed]
                return sure, row["can I believe the map?"]
    return "", ""


def difference(axis: AxisComparison | None) -> str:
    """D with its interval."""
    return "" if axis is None else f"{axis.d:+.2f} ({axis.low:+.2f} to {axis.high:+.2f})"


if __name__ == "__main__":
    main()
