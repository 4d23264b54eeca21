"""What an audit answers, for every classifier of a folder, beside what it answered earlier.

Takes folders of ``foci train`` called COHORT-NAME-PRESET-SEED beside the folders of their cohorts
(``backbone_table.py`` trains such), audits them with the rankings that need no training, and writes
docs/appendix/answers.csv; ``python -m tools.results`` puts it on the pages. D is against random
orders, p against content-free maps. "Before" is the answer under earlier rules for all seeds
together (docs/appendix/study-foci.csv): equal numbers of sure slides show that it is the same
classifier. Finished audits are kept, so a run that was stopped continues.

    python benchmarks/answer_table.py FOLDER [--only 'lung-*-0']
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import torch

from foci.audits import run as audit_run
from foci.audits.audit import StoredAudit
from foci.audits.records import AxisComparison, Interval
from foci.audits.settings import AuditSettings
from foci.audits.sources import open_sources
from foci.bags import Cohort

APPENDIX = Path(__file__).parents[1] / "docs" / "appendix"
COHORTS = {"lung": "TCGA lung", "brca": "TCGA breast", "lc25000": "LC25000 bags"}
NAMES = {
    "transmil": "TransMIL", "acmil": "ACMIL", "abmil": "ABMIL", "clam-sb": "CLAM-SB",
    "attrimil": "AttriMIL", "asmil": "ASMIL", "mhim-mil": "MHIM-MIL",
}  # fmt: skip
SHOWN = ("native", "evidence", "random")


def main() -> None:
    """Audit what has not been audited yet; one row of the file each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", default=["*-*-paper-[0-9]"], help="names of folders")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = {one for glob in options.only for one in options.folder.glob(glob)}
    rows = []
    for model in sorted(found, key=_place):
        cohort, name, _ = _place(model)
        if (model / "backbone.json").exists() and name < len(NAMES):
            rows.append(row(model, audited(model, options.folder / list(COHORTS)[cohort])))
            print(*list(rows[-1].values())[:9], sep=" | ", flush=True)
    with (APPENDIX / "answers.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _place(model: Path) -> tuple[int, int, int]:
    """Cohort, classifier and seed as the tables list them; others come last."""
    cohort, _, rest = model.name.partition("-")
    name = rest.rsplit("-", 2)[0]
    known, architectures = list(COHORTS), list(NAMES)
    first = known.index(cohort) if cohort in COHORTS else len(known)
    second = architectures.index(name) if name in NAMES and first < len(known) else len(NAMES)
    return first, second, int(model.name[-1])


def audited(model: Path, cohort: Path) -> StoredAudit:
    """The audit of a classifier, with the rankings that need no training."""
    (features,) = cohort.glob("features*")
    sources = open_sources(model, Cohort.read(features, cohort / "cohort.csv"))
    settings = AuditSettings(rankings=SHOWN)
    return audit_run.run(sources, settings, model.parent / "audits" / model.name)


def row(model: Path, audit: StoredAudit) -> dict[str, str]:
    """One row of the file."""
    cohort, _, rest = model.name.partition("-")
    name, _, seed = rest.rsplit("-", 2)
    answers, numbers = audit.summary.answers, audit.summary.views["prediction"]
    found, null = answers.map.comparison, answers.map.null
    axes = (None, None) if found is None else (found.sufficiency, found.necessity)
    decided = {ranking: numbers[ranking].decided for ranking in SHOWN}
    shares = {key: None if own is None else own.decisive_share for key, own in decided.items()}
    near = {key: None if own is None else own.efficiency for key, own in decided.items()}
    sure, before = earlier(COHORTS[cohort], NAMES[name], int(seed))
    return {
        "cohort": COHORTS[cohort],
        "classifier": NAMES[name],
        "seed": seed,
        "sure slides before": sure,
        "sure slides now": str(answers.n_decided),
        "can I believe the map? before, all seeds": before,
        "now": answers.map.answer,
        "is there a better order?": answers.order.answer,
        "D, sufficiency": difference(axes[0]),
        "D, necessity": difference(axes[1]),
        "p": "" if null is None else f"{null.pvalue:.3f}",
        **{
            f"sure slides with deciding tiles (%), {ranking}": percent(shares[ranking])
            for ranking in SHOWN
        },
        **{f"efficiency, {ranking}": estimate(near[ranking]) for ranking in SHOWN},
        "what the audit says": answers.map.sentences[0],
    }


def earlier(cohort: str, classifier: str, seed: int) -> tuple[str, str]:
    """Sure slides of a seed, and answers of all seeds, under earlier rules."""
    with (APPENDIX / "study-foci.csv").open(newline="", encoding="utf-8") as file:
        for one in csv.DictReader(file):
            if (one["cohort"], one["classifier"]) == (cohort, classifier):
                return one["decided slides"].split(", ")[seed], one["can I believe the map?"]
    return "", ""


def difference(axis: AxisComparison | None) -> str:
    """D with its interval."""
    return "" if axis is None else f"{axis.d:+.2f} ({axis.low:+.2f} to {axis.high:+.2f})"


def percent(share: float | None) -> str:
    """A share of slides."""
    return "" if share is None else f"{100 * share:.1f}"


def estimate(value: Interval | None) -> str:
    """An efficiency without its interval."""
    return "" if value is None or value.estimate is None else f"{value.estimate:.3f}"


if __name__ == "__main__":
    main()
