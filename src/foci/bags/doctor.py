"""Read every feature file once, and keep what the checks need to know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from foci.bags.bag import Bag, share_on_grid, spacing
from foci.bags.cohort import CohortOptions, find_slides, overlapping_patients
from foci.bags.importers import Imported
from foci.bags.layouts.hdf5 import reading
from foci.bags.matching import Matched, find_features
from foci.bags.read import read_bag
from foci.bags.slide import Skipped, Slide, many_skipped
from foci.bags.store import N_CAP
from foci.errors import BagError, EmptyBagError, FociError, NotFiniteError
from foci.progress import Progress
from foci.words import counted, some, tally


@dataclass(frozen=True)
class FileFacts:
    """What the checks know of one feature file.

    Attributes:
        slide_id: File name without ending.
        problem: ``"empty"``, ``"not finite"``, ``"unreadable"``, or None for a good bag.
        message: The refusal in one line, if any.
        layout: Name of the reader.
        encoder: Encoder named in the file.
        n_tiles: Number of tiles.
        width: Feature width.
        has_coords: Whether there are coordinates.
        on_grid: Share of neighbouring tiles whose distance is a multiple of the spacing.
        duplicates: Tiles at a position already taken.
        patch_size_inferred: Whether the tile size had to be inferred.
    """

    slide_id: str
    problem: str | None = None
    message: str = ""
    layout: str = ""
    encoder: str | None = None
    n_tiles: int = 0
    width: int = 0
    has_coords: bool = False
    on_grid: float = 1.0
    duplicates: int = 0
    patch_size_inferred: bool = False


def take_census(
    files: dict[str, Path],
    *,
    layout: str = "auto",
    mpp: float | None = None,
    sample: int | None = None,
    progress: Progress = lambda items, what: items,
) -> list[FileFacts]:
    """Read every file, or ``sample`` of them spread evenly over the folder."""
    names = sorted(files)
    if sample is not None and sample < len(names):
        names = [names[i] for i in np.linspace(0, len(names) - 1, sample).astype(int)]
    return [_facts(name, files[name], layout, mpp) for name in progress(names, "reading")]


def _facts(name: str, path: Path, layout: str, mpp: float | None) -> FileFacts:
    try:
        with reading(path):
            return _describe(read_bag(path, slide_id=name, layout=layout, mpp=mpp))
    except EmptyBagError as error:
        return FileFacts(name, "empty", str(error))
    except NotFiniteError as error:
        return FileFacts(name, "not finite", str(error))
    except BagError as error:
        return FileFacts(name, "unreadable", str(error))


def _describe(bag: Bag) -> FileFacts:
    on_grid, duplicates = 1.0, 0
    if bag.coords is not None:
        step = spacing(bag.coords)
        on_grid = 1.0 if step is None else share_on_grid(bag.coords, step)
        duplicates = len(bag) - len(np.unique(bag.coords, axis=0))
    return FileFacts(
        slide_id=bag.slide_id,
        layout=bag.provenance.layout,
        encoder=bag.provenance.encoder,
        n_tiles=len(bag),
        width=bag.width,
        has_coords=bag.coords is not None,
        on_grid=on_grid,
        duplicates=duplicates,
        patch_size_inferred=bag.patch_size_inferred,
    )


# One line of the table that ``foci doctor`` prints.


Status = Literal["PASS", "WARN", "FAIL"]


@dataclass(frozen=True)
class Check:
    """Outcome of one check: what it found and, unless it passed, what to do.

    Attributes:
        name: What was checked.
        status: How it went.
        detail: What was found.
        fix: What to do about it.
        items: Everything that the detail counts, one by one, where a list is worth having.
    """

    name: str
    status: Status
    detail: str
    fix: str = ""
    items: tuple[str, ...] = ()


# Checks of the feature files: readable, finite, same width, on a grid.


def check_features(facts: Sequence[FileFacts], n_files: int) -> list[Check]:
    """Checks that need only the feature files."""
    good = [f for f in facts if f.problem is None]
    checks = [
        _files(facts, n_files),
        _problem(facts, "empty", "empty bags", "WARN", "they are skipped and listed"),
        _problem(facts, "not finite", "NaN or Inf", "FAIL", "extract these slides again"),
    ]
    if good:
        checks += [_layouts(good), _widths(good), _sizes(good), *_coordinates(good)]
    return checks


def _files(facts: Sequence[FileFacts], total: int) -> Check:
    bad = [f for f in facts if f.problem == "unreadable"]
    read = f"{len(facts)} of {total} files read" if len(facts) < total else f"{total} files read"
    if bad:
        detail = f"{read}, {len(bad)} unreadable; first: {bad[0].message}"
        return Check("files", "FAIL", detail, "repair or remove them; audits skip and list them")
    return Check("files", "PASS", read)


def _problem(
    facts: Sequence[FileFacts], problem: str, name: str, status: Status, fix: str
) -> Check:
    bad = [f.slide_id for f in facts if f.problem == problem]
    return Check(name, status, some(bad), fix) if bad else Check(name, "PASS", "none")


def _layouts(good: Sequence[FileFacts]) -> Check:
    layouts = Counter(f.layout for f in good)
    encoders = Counter(f.encoder for f in good if f.encoder)
    detail = tally(layouts) + (f"; encoder {tally(encoders)}" if encoders else "")
    if len(layouts) > 1 or len(encoders) > 1:
        return Check("layout", "WARN", detail, "use one tool and one encoder for the whole cohort")
    return Check("layout", "PASS", detail)


def _widths(good: Sequence[FileFacts]) -> Check:
    widths = Counter(f.width for f in good)
    if len(widths) > 1:
        usual = widths.most_common(1)[0][0]
        odd = some([f.slide_id for f in good if f.width != usual])
        detail = f"features are {usual} wide, but not in {odd}"
        return Check("width", "FAIL", detail, "use one encoder for the whole cohort")
    return Check("width", "PASS", f"all features are {good[0].width} wide")


def _sizes(good: Sequence[FileFacts]) -> Check:
    sizes = sorted(f.n_tiles for f in good)
    above = sum(n > N_CAP for n in sizes)
    detail = f"{sizes[0]} to {sizes[-1]} tiles, median {sizes[len(sizes) // 2]}"
    return Check("tiles", "PASS", f"{detail}; {above} bags above the cap of {N_CAP}")


def _coordinates(good: Sequence[FileFacts]) -> list[Check]:
    without = [f.slide_id for f in good if not f.has_coords]
    if without:
        fix = "use files that store them, or do without tile maps and contiguity"
        return [Check("coordinates", "WARN", f"missing in {some(without)}", fix)]
    off = [f.slide_id for f in good if f.on_grid < 0.9]
    taken = [f.slide_id for f in good if f.duplicates]
    inferred = sum(f.patch_size_inferred for f in good)
    detail = "on a grid, one tile per position"
    if inferred:
        detail += f"; tile size inferred from the spacing in {inferred} files"
    checks = [Check("coordinates", "PASS", detail)]
    if off or taken:
        checks = []
    if off:
        checks.append(
            Check(
                "coordinates",
                "WARN",
                f"not on a grid in {some(off)}",
                "check the unit and the tile size",
            )
        )
    if taken:
        checks.append(
            Check(
                "coordinates",
                "WARN",
                f"two tiles at one place in {some(taken)}",
                "extract these slides again",
            )
        )
    return checks


# Checks of the label table: matching, patients, splits, classes.


_FEW = 10
_NO_SPLIT = "no split"
"""Slides outside all splits, whose classes do not matter."""


def check_table(slides: Sequence[Slide], *, allow_patient_overlap: bool = False) -> list[Check]:
    """Checks of patients, splits and classes."""
    return [_leakage(slides, allow_patient_overlap), *_classes(slides)]


def _leakage(slides: Sequence[Slide], allowed: bool) -> Check:
    """Every patient in two splits, with these splits."""
    overlap = [
        f"{case} ({' and '.join(names)})" for case, names in overlapping_patients(slides).items()
    ]
    if not overlap:
        cases = len({s.case_id for s in slides})
        return Check("leakage", "PASS", f"{cases} patients, none in two splits")
    verb = "is" if len(overlap) == 1 else "are"
    found = f"{counted(len(overlap), 'patient')} {verb} in two splits: {', '.join(overlap)}"
    if allowed:
        fix = "allowed by --allow-patient-overlap; what is measured on their slides is too good"
        return Check("leakage", "WARN", found, fix, tuple(overlap))
    fix = (
        "put all slides of a patient into one split, or split again by patient, or go on with "
        "them: --allow-patient-overlap"
    )
    return Check("leakage", "FAIL", found, fix, tuple(overlap))


def check_matching(rows: int, missing: Sequence[Skipped], unused: Sequence[str]) -> Check:
    """Check that every row has a feature file, and every file a row."""
    parts = []
    if missing:
        names = some([slide.slide_id for slide in missing])
        parts.append(f"no features for {names}; first: {missing[0].reason}")
    if unused:
        parts.append(f"not in the table: {some(unused)}")
    if len(missing) == rows:
        fix = "check slide names and, if the table has it, the column feature_path"
        return Check("matching", "FAIL", "; ".join(parts), fix)
    if parts:
        fix = "extract the missing slides or mend feature_path; files outside the table are ignored"
        return Check("matching", "WARN", "; ".join(parts), fix)
    return Check("matching", "PASS", f"every one of {rows} slides has a feature file")


def _classes(slides: Sequence[Slide]) -> list[Check]:
    unlabelled = [s.slide_id for s in slides if s.label is None]
    table: dict[str, Counter[str]] = {}
    rest = _NO_SPLIT if any(slide.split for slide in slides) else "all slides"
    for slide in slides:
        if slide.label is not None:
            table.setdefault(slide.split or rest, Counter())[slide.label] += 1
    classes = sorted({label for counts in table.values() for label in counts})
    detail = "; ".join(f"{split}: {tally(counts)}" for split, counts in table.items())
    used = {split: counts for split, counts in table.items() if split != _NO_SPLIT}
    single = [split for split, counts in used.items() if len(counts) < max(2, len(classes))]
    few = [split for split, counts in used.items() if min(counts.values()) < _FEW]
    checks = []
    if single:
        fix = "every split needs every class; split again, stratified by label"
        checks.append(
            Check("classes", "FAIL", f"a class is missing in {', '.join(single)} ({detail})", fix)
        )
    elif few:
        fix = f"fewer than {_FEW} slides of a class give wide intervals"
        checks.append(Check("classes", "WARN", detail, fix))
    elif table:
        checks.append(Check("classes", "PASS", detail))
    if unlabelled:
        fix = "add labels, or audit the predicted class"
        checks.append(Check("unlabelled", "WARN", some(unlabelled), fix))
    return checks


# Check a feature folder and its label table: what ``foci doctor`` runs.


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
