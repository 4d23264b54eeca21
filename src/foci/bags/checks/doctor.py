"""Check a feature folder and its label table: what ``foci doctor`` runs."""

from __future__ import annotations

from foci.bags.checks.census import FileFacts, take_census
from foci.bags.checks.check import Check
from foci.bags.checks.features import check_features
from foci.bags.checks.table import check_matching, check_table
from foci.bags.cohort.feature_folder import find_features
from foci.bags.cohort.inputs import find_slides
from foci.bags.cohort.matching import Matched
from foci.bags.cohort.options import CohortOptions
from foci.bags.cohort.slide import many_skipped
from foci.bags.importers import Imported
from foci.errors import FociError
from foci.progress import Progress


def examine(
    options: CohortOptions,
    *,
    sample: int | None = None,
    progress: Progress = lambda items, what: items,
) -> list[Check]:
    """Run every check that the given inputs allow; a refusal becomes a FAIL, never a crash.

    With a label table the files of its slides are read, wherever they are, and no others.

    Args:
        options: Feature folder, and label table if there is one.
        sample: Read only this many files, spread over the folder; None for all.
        progress: Wraps the loop over files; :func:`foci.progress.track` shows a bar.
    """
    try:
        files = find_features(options.features)
    except FociError as error:
        return [Check("files", "FAIL", f"{error.where}: {error.what}", error.fix)]
    missing = 0
    try:
        imported, matched = find_slides(
            files,
            options.labels,
            splits=options.splits,
            slide_table=options.slide_table,
            label_column=options.label_column,
            fold=options.fold,
            only_classes=options.only_classes,
            exclude_class=options.exclude_class,
        )
        named = {s.slide_id: s.feature_path for s in matched.slides if s.feature_path is not None}
        files = named or files
        missing = len(matched.missing)
        table = _table_checks(imported, matched, options)
    except FociError as error:
        table = [Check("labels", "FAIL", f"{error.where}: {error.what}", error.fix)]
    facts = take_census(
        files, layout=options.layout, mpp=options.mpp, sample=sample, progress=progress
    )
    return [*_skipped(facts, missing), *check_features(facts, len(files)), *table]


def _skipped(facts: list[FileFacts], missing: int) -> list[Check]:
    """The first check to be read: so many slides would be skipped that the rest hardly matters."""
    bad = sum(one.problem is not None for one in facts)
    line = many_skipped(bad + missing, len(facts) + missing)
    fix = "see the failures below; commands that use this cohort end with exit code 3"
    return [] if line is None else [Check("skipped", "FAIL", line, fix)]


def _table_checks(imported: Imported, matched: Matched, options: CohortOptions) -> list[Check]:
    notes = "".join(f"; {note}" for note in imported.notes)
    if options.labels is not None:
        found = f"{len(imported.slides)} slides in {options.labels.name}{notes}"
        matching = check_matching(len(imported.slides), matched.missing, matched.unused)
        checks = [Check("labels", "PASS", found), matching]
        return [*checks, *_slide_checks(matched, options)] if matched.slides else checks
    if options.splits is None:
        return []
    placed = sum(slide.split is not None for slide in imported.slides)
    found = f"{placed} slides in {options.splits.name}{notes}"
    return [Check("splits", "PASS", found), *_slide_checks(matched, options)]


def _slide_checks(matched: Matched, options: CohortOptions) -> list[Check]:
    return check_table(matched.slides, allow_patient_overlap=bool(options.allow_patient_overlap))
