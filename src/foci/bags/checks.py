"""``foci doctor``: is this folder, with this table, fit for an audit?"""

from __future__ import annotations

from pathlib import Path

from foci.bags.census import Progress, take_census
from foci.bags.check import Check
from foci.bags.feature_checks import check_features
from foci.bags.folder import find_features
from foci.bags.importers import read_slides
from foci.bags.matching import match
from foci.bags.table_checks import check_matching, check_table
from foci.errors import FociError


def examine(
    features: str | Path,
    labels: str | Path | None = None,
    *,
    splits: str | Path | None = None,
    slide_table: str | Path | None = None,
    label_column: str | None = None,
    fold: int | None = None,
    layout: str = "auto",
    mpp: float | None = None,
    sample: int | None = None,
    progress: Progress = lambda names: names,
) -> list[Check]:
    """Run every check that the given inputs allow; a refusal becomes a FAIL, never a crash."""
    try:
        files = find_features(features)
    except FociError as error:
        return [Check("files", "FAIL", f"{error.where}: {error.what}", error.fix)]
    facts = take_census(files, layout=layout, mpp=mpp, sample=sample, progress=progress)
    checks = check_features(facts, len(files))
    if labels is None:
        return checks
    try:
        imported = read_slides(
            labels, splits=splits, slide_table=slide_table, label_column=label_column, fold=fold
        )
        matched = match(imported.slides, files)
    except FociError as error:
        return [*checks, Check("labels", "FAIL", f"{error.where}: {error.what}", error.fix)]
    notes = "; ".join(imported.notes)
    table = f"{len(imported.slides)} slides in {Path(labels).name}"
    checks.append(Check("labels", "PASS", f"{table}; {notes}" if notes else table))
    checks.append(
        check_matching(len(imported.slides), [s.slide_id for s in matched.missing], matched.unused)
    )
    return [*checks, *check_table(matched.slides)]
