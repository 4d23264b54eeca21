"""Which candidate becomes ``evidence``: mean rank by median decisive K on validation slides.

Reads the cells that ``ranking_table.py --split val`` stored, of one or several cohorts. Within
every trained classifier (architecture, cohort, seed) the candidates are ranked by their median
decisive K, missing as infinite, ties sharing the mean rank. The lowest mean rank wins; between
equal ones, the higher mean Faithfulness. Pooling classifiers allow all candidates, others fewer.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from ranking_columns import NEVER, Row, mean, median_decisive

LEFT_OUT = {"native", "random", "selector", "evidence"}


def main() -> None:
    """Read, rank, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("cells", type=Path, nargs="+", help="folders of ranking_table.py")
    parser.add_argument("--by-cohort", action="store_true", help="one choice per folder")
    options = parser.parse_args()
    groups = [[f] for f in options.cells] if options.by_cohort else [options.cells]
    for folders in groups:
        print(f"\n{', '.join(f.name for f in folders)}")
        choose([path for f in folders for path in sorted(f.glob("*--val.json"))])


def choose(paths: list[Path]) -> None:
    """One line per candidate, the chosen one first."""
    trained: dict[str, dict[str, list[Row]]] = {}
    for path in paths:
        model, name, _ = path.stem.split("--")
        rows = json.loads(path.read_text())
        if rows and name not in LEFT_OUT:
            trained.setdefault(model, {})[name] = rows
    ranks: dict[tuple[int, str], list[tuple[float, float]]] = {}
    for by_name in trained.values():
        medians = [min(median_decisive(rows), NEVER) for rows in by_name.values()]
        for (name, rows), rank in zip(by_name.items(), rankdata(medians), strict=True):
            cell = (float(rank), mean(rows, "faithfulness"))
            ranks.setdefault((len(by_name), name), []).append(cell)
    print("| candidates | ranking | trained classifiers | mean rank | Faithfulness |")
    print("|---|---|---|---|---|")
    lines = [
        (n, *np.nanmean(found, axis=0), name, len(found)) for (n, name), found in ranks.items()
    ]
    for n, rank, faithful, name, count in sorted(
        lines, key=lambda line: (line[0], line[1], -line[2])
    ):
        print(f"| {n} | {name} | {count} | {rank:.2f} | {faithful:.3f} |")


if __name__ == "__main__":
    main()
