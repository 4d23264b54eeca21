"""Write the files behind docs/results.md from the two studies of ``real_study.py``.

    python benchmarks/study_rows.py OUT

reads ``OUT/paper`` and ``OUT/foci`` once ``foci study run`` has finished them, writes
``study-paper.csv``, ``study-foci.csv``, ``study-claims.csv``, ``study-carried.csv`` and
``answers.csv`` into docs/appendix, and the figures into docs/images; then
``python -m tools.results`` puts numbers and tables on the pages. A number over fewer seeds than the
study has carries how many in brackets; a cell that is not finished is named and nothing is written.
"""

from __future__ import annotations

import argparse
import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from foci.audits import StoredAudit
from foci.audits.records import AxisComparison
from foci.studies import figures, tables
from foci.studies.plan import StudyFolder
from foci.studies.read import Measure, Place, StudyNumbers, Value, audit_folders
from foci.studies.table import shown

DOCS = Path(__file__).parents[1] / "docs"
APPENDIX = DOCS / "appendix"
SHOWN_COUNTS = (8, 32, 128)
COHORTS = {"nsclc": "TCGA lung", "brca": "TCGA breast", "lc25000": "LC25000 bags"}
RANKINGS = ("native", "evidence", "selector", "random")
CLAIMS = (
    "shi", "tests", "hypotheses", "lambda_ablation", "joint", "preservation", "efficiency",
)  # fmt: skip
"""Tables of the study of which single numbers stand in the text."""

FIGURES = {
    "foci": [("carried", "study-carried")],
    "paper": [
        ("srp_curve", "study-srp"), ("auc_vs_shi", "study-auc-shi"), ("deletion", "study-deletion"),
    ],
}  # fmt: skip
"""Figures on the page, and their names there."""


def main() -> None:
    """Read both studies and write both files."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path, help="holds paper/study.yaml and foci/study.yaml")
    folder = parser.parse_args().folder
    studies = {profile: StudyFolder(folder / profile) for profile in ("paper", "foci")}
    for study in studies.values():
        unfinished = [cell.name for cell in study.plan().cells if study.result(cell) is None]
        if unfinished:
            raise SystemExit(f"{study.path}: not finished: {', '.join(unfinished)}")
    numbers = {profile: tables.write(study).numbers for profile, study in studies.items()}
    write("study-paper.csv", list(paper_rows(numbers["paper"])))
    write("study-foci.csv", list(foci_rows(studies["foci"], numbers["foci"])))
    write("answers.csv", list(answer_rows(studies["foci"])))
    write("study-claims.csv", list(claims(studies["paper"].path / tables.FOLDER)))
    for profile, wanted in FIGURES.items():
        drawn = figures.write(studies[profile], numbers[profile])
        if profile == "foci":
            write("study-carried.csv", carried_rows(drawn[0]))
        for label, name in wanted:
            picture = studies[profile].path / figures.FOLDER / f"{label}.svg"
            rounded = re.sub(
                r"\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}", picture.read_text()
            )
            (DOCS / "images" / f"{name}.svg").write_text(rounded)


def write(name: str, rows: Sequence[dict[str, str]]) -> None:
    """A file of the appendix."""
    with (APPENDIX / name).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def paper_rows(numbers: StudyNumbers) -> Iterator[dict[str, str]]:
    """One row per cohort, classifier and ranking; the label view unless a column says otherwise."""
    n = max(len(found) for found in numbers.audits.values())
    for place in numbers.places:
        for ranking in ("native", "selector", "evidence", "random"):

            def text(measure: Measure, digits: int, *, spread: bool, at: Place = place) -> str:
                return in_words(numbers.value(at, measure), digits, n, spread=spread)

            yield {
                "cohort": COHORTS[place.cohort],
                "classifier": shown(place.backbone),
                "ranking": ranking,
                "AUC": text(Measure("auc"), 3, spread=False) if ranking == "native" else "",
                "MSK_cond": text(Measure("msk_cond", ranking), 2, spread=True),
                "Reach (%)": text(Measure("reach", ranking), 1, spread=True),
                "AUKC": text(Measure("aukc", ranking), 3, spread=False),
                "restricted mean K": text(Measure("restricted", ranking), 1, spread=True),
                "K, decided slides": text(
                    Measure("decided_k", ranking, "prediction"), 2, spread=False
                ),
                "decisive K": text(Measure("decisive_k", ranking, "prediction"), 1, spread=False),
                "decisive sets (%)": text(
                    Measure("decisive_share", ranking, "prediction"), 0, spread=True
                ),
                "deletion, per slide": text(Measure("slide_faithfulness", ranking), 3, spread=True),
                "AUC, 32 tiles": text(Measure("selected_auc", ranking, k=32), 3, spread=False),
            }


def foci_rows(study: StudyFolder, numbers: StudyNumbers) -> Iterator[dict[str, str]]:
    """One row per cohort and classifier: answers, deciding tiles and efficiencies."""
    folders = audit_folders(study)
    for place in numbers.places:
        answers = [
            StoredAudit.load(folder).summary.answers for _, folder in sorted(folders[place].items())
        ]

        def each(metric: str, digits: int, names: Sequence[str], at: Place = place) -> str:
            values = (numbers.value(at, Measure(metric, one, "prediction")) for one in names)
            return ", ".join(in_words(v, digits, len(folders[at]), spread=False) for v in values)

        yield {
            "cohort": COHORTS[place.cohort],
            "classifier": shown(place.backbone),
            "decided slides": ", ".join(str(answer.n_decided) for answer in answers),
            "can I believe the map?": tallied([answer.map.answer for answer in answers]),
            "is there a better order?": tallied([answer.order.answer for answer in answers]),
            f"decisive sets (%): {', '.join(RANKINGS)}": each("decisive_share", 0, RANKINGS),
            f"decisive K: {', '.join(RANKINGS[:3])}": each("decisive_k", 1, RANKINGS[:3]),
            f"efficiency: {', '.join(RANKINGS)}": each("efficiency", 3, RANKINGS),
        }


def answer_rows(study: StudyFolder) -> Iterator[dict[str, str]]:
    """One row per audit: its answers, what they rest on, and the answer under earlier rules.

    Earlier answers, of all seeds together, are those of the file that is replaced.
    """
    with (APPENDIX / "answers.csv").open(newline="", encoding="utf-8") as file:
        earlier = {
            (row["cohort"], row["classifier"]): row["earlier, all seeds"]
            for row in csv.DictReader(file)
        }
    for place, folders in audit_folders(study).items():
        cohort, classifier = COHORTS[place.cohort], shown(place.backbone)
        for seed, folder in sorted(folders.items()):
            answers = StoredAudit.load(folder).summary.answers
            found, null = answers.map.comparison, answers.map.null
            axes = (None, None) if found is None else (found.sufficiency, found.necessity)
            yield {
                "cohort": cohort,
                "classifier": classifier,
                "seed": seed,
                "earlier, all seeds": earlier[cohort, classifier],
                "sure slides": str(answers.n_decided),
                "can I believe the map?": answers.map.answer,
                "is there a better order?": answers.order.answer,
                "D, sufficiency": difference(axes[0]),
                "D, necessity": difference(axes[1]),
                "p of content-free maps": "" if null is None else f"{null.pvalue:.3f}",
                "what the audit says": answers.map.sentences[0],
            }


def carried_rows(figure: figures.StudyFigure) -> list[dict[str, str]]:
    """Shares of sure slides that the first tiles carry, and the count at which they are half."""
    lines: dict[tuple[str, str, str], dict[int, float]] = {}
    for cohort, backbone, line, k, mean, *_ in figure.rows:
        lines.setdefault((cohort, backbone, line), {})[k] = mean
    return [
        {
            "cohort": COHORTS[cohort],
            "classifier": shown(backbone),
            "order": line,
            **{f"first {k} tiles (%)": f"{100 * shares[k]:.1f}" for k in SHOWN_COUNTS},
            "half at": str(next((k for k, share in shares.items() if share >= 0.5), "")),
        }
        for (cohort, backbone, line), shares in lines.items()
    ]


def difference(axis: AxisComparison | None) -> str:
    """D with its interval."""
    return "" if axis is None else f"{axis.d:+.2f} ({axis.low:+.2f} to {axis.high:+.2f})"


def claims(folder: Path) -> Iterator[dict[str, str]]:
    """Numbers of the tables that the text speaks of, with four digits."""
    for label in CLAIMS:
        with (folder / f"{label}.csv").open(newline="", encoding="utf-8") as file:
            for line in csv.DictReader(file):
                fields = list(line)
                names = [line[name] for name in fields[: fields.index("column")]]
                row = " ".join(filter(None, names))
                numbers = {key: digits(line[key]) for key in ("mean", "std", "n", "paper_mean")}
                if numbers["mean"]:
                    yield {"table": label, "row": row, "column": line["column"], **numbers}


def digits(text: str) -> str:
    """A number with four digits; nothing where there is none."""
    try:
        return f"{float(text):.4g}"
    except ValueError:
        return ""


def in_words(value: Value, digits: int, n: int, *, spread: bool) -> str:
    """Mean, spread where there is one, and in brackets the seeds if not all have a number."""
    if value.mean is None:
        reason = value.gap or ""
        if "more than K_max" in reason:
            return "> 256"
        return "none" if "no decisive set" in reason else ""
    text = f"{value.mean:.{digits}f}"
    if spread and value.std is not None:
        text += f" ± {value.std:.{digits}f}"
    return text if value.n == n else f"{text} ({value.n})"


def tallied(answers: Sequence[str]) -> str:
    """An answer, or each with the number of seeds that gave it."""
    counts = Counter(answers)
    if len(counts) == 1:
        return answers[0]
    return ", ".join(f"{answer} ({times})" for answer, times in counts.most_common())


if __name__ == "__main__":
    main()
