"""``foci doctor``: is this folder, with this table, fit for an audit?"""

from __future__ import annotations

from pathlib import Path

from foci.bags.checks.census import take_census
from foci.bags.checks.check import Check
from foci.bags.checks.features import check_features
from foci.bags.checks.table import check_matching, check_table
from foci.bags.cohort.feature_folder import find_features
from foci.bags.cohort.inputs import find_slides
from foci.bags.cohort.matching import Matched
from foci.bags.importers import Imported
from foci.errors import FociError
from foci.progress import Progress


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
    progress: Progress = lambda items, what: items,
) -> list[Check]:
    """Run every check that the given inputs allow; a refusal becomes a FAIL, never a crash.

    With a label table the files of its slides are read, wherever they are, and no others.
    """
    try:
        files = find_features(features)
    except FociError as error:
        return [Check("files", "FAIL", f"{error.where}: {error.what}", error.fix)]
    try:
        imported, matched = find_slides(
            files,
            labels,
            splits=splits,
            slide_table=slide_table,
            label_column=label_column,
            fold=fold,
        )
        named = {s.slide_id: s.feature_path for s in matched.slides if s.feature_path is not None}
        files = named or files
        table = _table_checks(imported, matched, labels, splits)
    except FociError as error:
        table = [Check("labels", "FAIL", f"{error.where}: {error.what}", error.fix)]
    facts = take_census(files, layout=layout, mpp=mpp, sample=sample, progress=progress)
    return [*check_features(facts, len(files)), *table]


def _table_checks(
    imported: Imported,
    matched: Matched,
    labels: str | Path | None,
    splits: str | Path | None,
) -> list[Check]:
    notes = "".join(f"; {note}" for note in imported.notes)
    if labels is not None:
        found = f"{len(imported.slides)} slides in {Path(labels).name}{notes}"
        matching = check_matching(len(imported.slides), matched.missing, matched.unused)
        checks = [Check("labels", "PASS", found), matching]
        return [*checks, *check_table(matched.slides)] if matched.slides else checks
    if splits is None:
        return []
    placed = sum(slide.split is not None for slide in imported.slides)
    found = f"{placed} slides in {Path(splits).name}{notes}"
    return [Check("splits", "PASS", found), *check_table(matched.slides)]
