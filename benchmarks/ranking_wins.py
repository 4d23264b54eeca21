"""Rankings against ``evidence``, slide by slide: wins and losses with intervals over patients.

Reads the cells that ``ranking_table.py`` stored. On decided slides, +1 where a ranking needs fewer
tiles than evidence, -1 where it needs more, 0 where both need the same or both fail; D is the mean,
its interval from resampled patients. Sufficiency is MSK, necessity is decisive K; slides of a class
in which no ranking has a decisive set on a tenth of the slides are left out of the latter. The
seeds of a classifier are taken together, the slides of one patient staying together.
"""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path

import numpy as np

from foci.metrics.cohort.necessity import classes_without_decisive_sets, no_room
from foci.metrics.cohort.orders import OrderComparison, compare_orders
from ranking_columns import Row

Cells = dict[str, dict[str, list[Row]]]
"""Rows by trained classifier and ranking."""


def main() -> None:
    """Read, compare, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("cells", type=Path, help="folder of ranking_table.py")
    parser.add_argument("--cohort", type=Path, required=True, help="folder with cohort.csv")
    parser.add_argument("--split", default="val")
    parser.add_argument("--against", default="evidence")
    options = parser.parse_args()
    with (options.cohort / "cohort.csv").open() as file:
        cases = {row["slide_id"]: row["case_id"] for row in csv.DictReader(file)}
    found: Cells = {}
    for path in sorted(options.cells.glob(f"*--{options.split}.json")):
        model, name, _ = path.stem.split("--")
        rows = json.loads(path.read_text())
        if rows and max(row["order"] for row in rows) == 0:
            found.setdefault(model, {})[name] = rows
    print("| classifier (seeds) | ranking | slides | MSK: wins, losses | D | "
          "decisive K: wins, losses | D | result |")  # fmt: skip
    print("|---" * 8 + "|")
    for architecture in sorted({model.rsplit("-", 1)[0] for model in found}):
        seeds = {m: own for m, own in found.items() if m.rsplit("-", 1)[0] == architecture}
        for name in sorted({n for own in seeds.values() for n in own} - {options.against}):
            show(architecture, name, options.against, seeds, cases)


def compared(
    name: str, base: str, seeds: Cells, cases: dict[str, str]
) -> tuple[list[Row], list[Row], OrderComparison, OrderComparison | None]:
    """Rows of a ranking and of another one, and both compared by MSK and by decisive K.

    The latter is None where no class is left.
    """
    both = {m: own for m, own in seeds.items() if name in own and base in own}
    ours, theirs, patients, kept = [], [], [], []
    for own in both.values():
        targets = np.array([row["target"] for row in own[base]])
        every = [
            counts(rows, "decisive")[None] for rows in own.values() if len(rows) == len(targets)
        ]
        without = classes_without_decisive_sets(every, targets)
        kept.append(~np.isin(targets, without))
        ours += own[name]
        theirs += own[base]
        patients += [cases[row["slide"]] for row in own[base]]
    marks, who = np.concatenate(kept), np.array(patients)
    a, b = counts(ours, "msk"), counts(theirs, "msk")
    enough = compare_orders(a, b, who)
    a, b = counts(ours, "decisive")[marks], counts(theirs, "decisive")[marks]
    needed = compare_orders(a, b, who[marks]) if marks.any() else None
    return ours, theirs, enough, needed


def show(architecture: str, name: str, base: str, seeds: Cells, cases: dict[str, str]) -> None:
    """One line: one ranking of one architecture."""
    ours, theirs, enough, needed = compared(name, base, seeds, cases)
    n_seeds = sum(name in own and base in own for own in seeds.values())
    room = not no_room(counts(theirs, "msk")[None])
    print(f"| {architecture} ({n_seeds}) | {name} | {len(ours)} | "
          f"{wins(ours, theirs, 'msk')} | {interval(enough)}{'' if room else ', no room'} | "
          f"{wins(ours, theirs, 'decisive')} | {interval(needed)} | "
          f"{enough.result}, {'-' if needed is None else needed.result} |")  # fmt: skip


def counts(rows: list[Row], key: str) -> np.ndarray:
    """Counts of a column, NaN where there is none."""
    return np.array([np.nan if row[key] is None else row[key] for row in rows], dtype=float)


def wins(ours: list[Row], theirs: list[Row], key: str) -> str:
    """Slides won and lost."""
    a, b = (np.nan_to_num(counts(rows, key), nan=np.inf) for rows in (ours, theirs))
    return f"{int((a < b).sum())}, {int((a > b).sum())}"


def interval(found: OrderComparison | None) -> str:
    """D with its interval."""
    return "-" if found is None else f"{found.d:+.2f} ({found.low:+.2f} to {found.high:+.2f})"


if __name__ == "__main__":
    main()
