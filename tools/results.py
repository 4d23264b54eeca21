"""Put the tables of docs/appendix onto the pages that show them.

``python -m tools.results`` writes what stands between ``<!-- table: NAME -->`` and ``<!-- end -->``
on the pages anew from the files; ``tests/test_results.py`` fails where a page and its file differ.
The files come from ``benchmarks/``; each says which program writes it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = ("results.md", "proofs.md", "statistics.md")
PLACE = re.compile(r"(?<=<!-- table: )([\w-]+)( -->\n).*?(?=<!-- end -->)", flags=re.DOTALL)
Rows = list[dict[str, str]]


def page_of(text: str) -> str:
    """A page with its tables written anew.

    Raises:
        KeyError: If the page names a table that there is not.
    """
    return PLACE.sub(lambda found: f"{found[1]}{found[2]}\n{TABLES[found[1]]()}\n", text)


def rows_of(name: str) -> Rows:
    """The rows of a file of the appendix."""
    with (DOCS / "appendix" / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    first, *others = (f"| {' | '.join(line)} |\n" for line in (head, *rows))
    return "".join([first, "|" + "---|" * len(head) + "\n", *others])


def by_cohort(rows: Rows, cell: Callable[[Rows], str]) -> str:
    """One row per classifier, one column per cohort."""
    cohorts = list(dict.fromkeys(row["cohort"] for row in rows))
    found = []
    for name in dict.fromkeys(row["classifier"] for row in rows):
        own = [row for row in rows if row["classifier"] == name]
        cells = [cell([row for row in own if row["cohort"] == cohort]) for cohort in cohorts]
        found.append([name, *cells])
    return markdown(["classifier", *cohorts], found)


def tiles_until_sure() -> str:
    """MSK_cond of every ranking of the study, profile paper."""
    order = ("native", "selector", "evidence", "random")

    def cell(rows: Rows) -> str:
        counts = {row["ranking"]: row["MSK_cond"] for row in rows}
        means = (re.sub(r" ± [\d.]+", "", counts[ranking]) for ranking in order)
        return ", ".join(means)

    return by_cohort(rows_of("study-paper.csv"), cell)


def deciding() -> str:
    """Shares of sure slides with deciding tiles, profile foci; means over seeds."""
    column = "decisive sets (%): native, evidence, selector, random"
    return by_cohort(rows_of("study-foci.csv"), lambda rows: rows[0][column])


def before_and_now() -> str:
    """Answers under the earlier rules and now."""
    rows = rows_of("answers.csv")
    found = []
    for cohort, classifier in dict.fromkeys((row["cohort"], row["classifier"]) for row in rows):
        own = [row for row in rows if (row["cohort"], row["classifier"]) == (cohort, classifier)]
        before = own[0]["can I believe the map? before, all seeds"]
        found.append([cohort, classifier, before, ", ".join(row["now"] for row in own),
                      ", ".join(row["p"] or "-" for row in own)])  # fmt: skip
    head = ["cohort", "classifier", "before, all seeds", "now, by seed", "p"]
    return markdown(head, found)


def coverage() -> str:
    """The least coverage of an interval, and the most false answers, by number of patients."""
    rows = rows_of("coverage.csv")
    found = []
    for patients in dict.fromkeys(row["patients"] for row in rows):
        own = [row for row in rows if row["patients"] == patients]
        least = min(value for row in own for name, value in row.items() if name.startswith("D = "))
        false = (max((row[name] for row in own), key=lambda share: float(share.rstrip(" %")))
                 for name in ("better", "worse"))  # fmt: skip
        found.append([patients, least, *false])
    return markdown(["patients", "least coverage", "false `better`", "false `worse`"], found)


def efficiency() -> str:
    """Distances from the proven minimum: native, evidence, random order."""

    def cell(rows: Rows) -> str:
        seeds = [re.sub(r".*\(", "(", row["classifier"]) for row in rows]
        near = [", ".join(row[name] for name in ("native", "evidence", "random")) for row in rows]
        return "; ".join(f"{one} {of}" for one, of in zip(near, seeds, strict=True)) or "-"

    rows = [{**row, "classifier": row["classifier (seeds)"]} for row in rows_of("efficiency.csv")]
    kinds = list(dict.fromkeys(re.sub(r" \(\d\)", "", row["classifier"]) for row in rows))
    cohorts = list(dict.fromkeys(row["cohort"] for row in rows))
    found = []
    for kind in kinds:
        own = [row for row in rows if row["classifier"].startswith(f"{kind} (")]
        by = [[row for row in own if row["cohort"] == cohort] for cohort in cohorts]
        found.append([kind, own[0]["theorem"], *map(cell, by)])
    return markdown(["classifier", "theorem", *cohorts], found)


TABLES = {
    "tiles-until-sure": tiles_until_sure,
    "deciding": deciding,
    "before-and-now": before_and_now,
    "coverage": coverage,
    "efficiency": efficiency,
}


if __name__ == "__main__":
    for name in PAGES:
        path = DOCS / name
        path.write_text(page_of(path.read_text(encoding="utf-8")), encoding="utf-8")
