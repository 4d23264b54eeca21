"""Every recipe beside native, random order, evidence and greedy search, one table per cohort.

Reads the cells that ``ranking_table.py`` stored. On decided slides, predicted-class view; means
over the seeds. The last columns compare with ``evidence`` slide by slide, as ``ranking_wins.py``
does: slides with a smaller and with a larger decisive set, and D of decisive K and of MSK with
intervals over patients. A last table counts the results.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
from collections import Counter
from pathlib import Path

from foci.metrics.cohort.orders import OrderComparison
from foci.studies.tables.naming import shown as title
from ranking_columns import OVERALL, Column, mean, written
from ranking_wins import Cells, compared, interval, wins

BASE = "evidence"
ORDER = (
    "native", "random", BASE, "greedy-insertion", "greedy-deletion",
    "paper-ste", "paper-soft", "centred", "tuned",
)  # fmt: skip
COLUMNS: dict[str, Column] = {
    "decided": OVERALL["decided"],
    "MSK": lambda rows: mean(rows, "msk"),
    "Reach": lambda rows: statistics.mean(row["msk"] is not None for row in rows),
    "median decisive K": OVERALL["median DK"],
    "decisive sets": OVERALL["has DK"],
    "Faithfulness": OVERALL["Faithfulness"],
    "average precision": OVERALL["average precision"],
}
PLACES = {"decided": 0, "MSK": 1, "median decisive K": 1}


def main() -> None:
    """Read, compare, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("cells", type=Path, nargs="+", help="folders of ranking_table.py")
    parser.add_argument("--cohorts", type=Path, nargs="+", required=True, help="one per folder")
    parser.add_argument("--split", default="test")
    options = parser.parse_args()
    found: Counter[tuple[str, str, str]] = Counter()
    for folder, cohort in zip(options.cells, options.cohorts, strict=True):
        for recipe, result in table(folder, cohort, options.split):
            found[recipe, cohort.name, result] += 1
    print("\n| ranking | " + " | ".join(cohort.name for cohort in options.cohorts) + " |")
    print("|---" * (len(options.cohorts) + 1) + "|")
    for recipe in (name for name in ORDER if any(key[0] == name for key in found)):
        cells = [
            ", ".join(f"{n} {what}" for what in ("better", "same", "worse", "unclear")
                      if (n := found[recipe, cohort.name, what]))
            for cohort in options.cohorts
        ]  # fmt: skip
        print(f"| `{recipe}` | " + " | ".join(cells) + " |")


def table(folder: Path, cohort: Path, split: str) -> list[tuple[str, str]]:
    """Print one cohort; returns the result of every ranking that was compared."""
    with (cohort / "cohort.csv").open() as file:
        cases = {row["slide_id"]: row["case_id"] for row in csv.DictReader(file)}
    found: dict[str, Cells] = {}
    for path in sorted(folder.glob(f"*--{split}.json")):
        model, name, _ = path.stem.split("--")
        rows = json.loads(path.read_text())
        if rows and name in ORDER:
            architecture = model.rsplit("-", 1)[0]
            found.setdefault(architecture, {}).setdefault(model, {})[name] = rows
    print(f"\n## {cohort.name}\n")
    ends = ("smaller, larger", "D, decisive K", "D, MSK")
    print("| classifier | ranking | seeds | " + " | ".join((*COLUMNS, *ends)) + " |")
    print("|---" * (len(COLUMNS) + len(ends) + 3) + "|")
    results = []
    for architecture, seeds in found.items():
        for name in ORDER:
            own = [by_name[name] for by_name in seeds.values() if name in by_name]
            if not own:
                continue
            values = [statistics.mean(f(rows) for rows in own) for f in COLUMNS.values()]
            cells = [written(v, PLACES.get(c, 2)) for c, v in zip(COLUMNS, values, strict=True)]
            if name not in (BASE, "random"):
                ours, theirs, enough, needed = compared(name, BASE, seeds, cases)
                cells += [wins(ours, theirs, "decisive"), interval(needed), interval(enough)]
                results.append((name, together(needed, enough)))
            else:
                cells += ["", "", ""]
            line = (title(architecture), f"`{name}`", str(len(own)), *cells)
            print("| " + " | ".join(line) + " |")
    return results


def together(needed: OrderComparison | None, enough: OrderComparison) -> str:
    """One word for both axes: a loss on either counts, then a gain on either."""
    found = {one.result for one in (needed, enough) if one is not None}
    return next((word for word in ("worse", "better", "same") if word in found), "unclear")


if __name__ == "__main__":
    main()
