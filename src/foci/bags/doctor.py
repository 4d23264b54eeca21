"""Checks of a feature folder and its label table: what ``foci doctor`` runs.

Every feature file is read once, and what the checks need to know of it is kept. A check passes,
warns or fails; a refusal becomes a failed check, never a crash.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from foci.bags.bag import Provenance, Slide, SlideRows, many_skipped, share_on_grid, spacing
from foci.bags.cohort import OVERLAP_FIX, CohortOptions, find_slides, overlapping_patients
from foci.bags.layouts import read_bag
from foci.bags.layouts.layout import reading
from foci.bags.matching import Matched, find_features
from foci.errors import BagError, EmptyBagError, FociError, NotFiniteError
from foci.progress import track
from foci.words import counted, some, tally

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


def examine(options: CohortOptions, *, sample: int | None = None) -> list[Check]:
    """Run every check that the given inputs allow; a refusal becomes a FAIL, never a crash.

    With a label table the files of its slides are read, wherever they are, and no others; with
    ``sample`` only so many of them, spread over the folder.
    """
    try:
        files = find_features(options.features)
    except FociError as error:
        return [Check("files", "FAIL", f"{error.where}: {error.what}", error.fix)]
    missing = 0
    try:
        rows, matched = find_slides(files, **options.table())
        named = {s.slide_id: s.feature_path for s in matched.slides if s.feature_path is not None}
        files = named or files
        missing = len(matched.missing)
        table = _table_checks(rows, matched, options)
    except FociError as error:
        table = [Check("labels", "FAIL", f"{error.where}: {error.what}", error.fix)]
    names = sorted(files)
    if sample is not None and sample < len(names):
        names = [names[i] for i in np.linspace(0, len(names) - 1, sample).astype(int)]
    facts = [_read(name, files[name], options) for name in track(names, "reading")]
    checks = [*_feature_checks(facts, len(files)), *table]
    bad = sum(one.problem is not None for one in facts)
    if line := many_skipped(bad + missing, len(facts) + missing):
        # the first to be read: so many slides would be skipped that the rest hardly matters
        fix = "see the failures below; commands that use this cohort end with exit code 3"
        return [Check("skipped", "FAIL", line, fix), *checks]
    return checks


# Feature files: readable, finite, of one width, on a grid.


_ON_GRID = 0.9
"""Share of neighbouring tiles that must be a multiple of the spacing apart."""


@dataclass(frozen=True)
class _File:
    """What the checks know of one feature file: a refused one has only its problem."""

    slide_id: str
    problem: type[BagError] | None = None
    message: str = ""
    origin: Provenance = field(default_factory=Provenance)
    n_tiles: int = 0
    width: int = 0
    has_coords: bool = False
    on_grid: bool = True
    duplicates: bool = False
    patch_size_inferred: bool = False


def _read(name: str, path: Path, options: CohortOptions) -> _File:
    try:
        with reading(path):
            bag = read_bag(path, slide_id=name, layout=options.layout, mpp=options.mpp)
            on_grid, duplicates = True, False
            if bag.coords is not None:
                step = spacing(bag.coords)
                on_grid = step is None or share_on_grid(bag.coords, step) >= _ON_GRID
                duplicates = len(np.unique(bag.coords, axis=0)) < len(bag)
            return _File(
                name,
                origin=bag.provenance,
                n_tiles=len(bag),
                width=bag.width,
                has_coords=bag.coords is not None,
                on_grid=on_grid,
                duplicates=duplicates,
                patch_size_inferred=bag.patch_size_inferred,
            )
    except (EmptyBagError, NotFiniteError) as error:
        return _File(name, type(error), str(error))
    except BagError as error:
        return _File(name, BagError, str(error))


def _feature_checks(files: Sequence[_File], total: int) -> list[Check]:
    """Checks that need only the feature files, of which ``files`` were read."""
    by_problem: dict[type[BagError] | None, list[_File]] = defaultdict(list)
    for file in files:
        by_problem[file.problem].append(file)
    read = f"{len(files)} of {total} files read" if len(files) < total else f"{total} files read"
    checks = [Check("files", "PASS", read)]
    if bad := by_problem[BagError]:
        detail = f"{read}, {len(bad)} unreadable; first: {bad[0].message}"
        fix = "repair or remove them; audits skip and list them"
        checks = [Check("files", "FAIL", detail, fix)]
    problems: tuple[tuple[type[BagError], str, Status, str], ...] = (
        (EmptyBagError, "empty bags", "WARN", "they are skipped and listed"),
        (NotFiniteError, "NaN or Inf", "FAIL", "extract these slides again"),
    )
    for problem, name, status, fix in problems:
        names = [file.slide_id for file in by_problem[problem]]
        found = Check(name, status, some(names), fix) if names else Check(name, "PASS", "none")
        checks.append(found)
    if good := by_problem[None]:
        checks += [_layouts(good), _widths(good), _sizes(good), *_coordinates(good)]
    return checks


def _layouts(good: Sequence[_File]) -> Check:
    layouts = Counter(file.origin.layout for file in good)
    encoders = Counter(file.origin.encoder for file in good if file.origin.encoder)
    detail = tally(layouts) + (f"; encoder {tally(encoders)}" if encoders else "")
    if len(layouts) > 1 or len(encoders) > 1:
        return Check("layout", "WARN", detail, "use one tool and one encoder for the whole cohort")
    return Check("layout", "PASS", detail)


def _widths(good: Sequence[_File]) -> Check:
    widths = Counter(file.width for file in good)
    if len(widths) > 1:
        usual = widths.most_common(1)[0][0]
        odd = some([file.slide_id for file in good if file.width != usual])
        detail = f"features are {usual} wide, but not in {odd}"
        return Check("width", "FAIL", detail, "use one encoder for the whole cohort")
    return Check("width", "PASS", f"all features are {good[0].width} wide")


def _sizes(good: Sequence[_File]) -> Check:
    sizes = sorted(file.n_tiles for file in good)
    detail = f"{sizes[0]} to {sizes[-1]} tiles, median {sizes[len(sizes) // 2]}"
    return Check("tiles", "PASS", detail)


def _coordinates(good: Sequence[_File]) -> list[Check]:
    checks = []
    if mixed := [file for file in good if file.origin.misplaced is not None]:
        found = f"of another order than features in {some([file.slide_id for file in mixed])}"
        fix = "write both in one run of the extraction"
        detail = f"{found}; first: {mixed[0].origin.misplaced}"
        checks.append(Check("coordinates", "WARN", detail, fix))
    if without := [file.slide_id for file in good if not file.has_coords]:
        fix = "use files that store them, or do without tile maps and contiguity"
        return [*checks, Check("coordinates", "WARN", f"missing in {some(without)}", fix)]
    if off := [file.slide_id for file in good if not file.on_grid]:
        what, fix = f"not on a grid in {some(off)}", "check the unit and the tile size"
        checks.append(Check("coordinates", "WARN", what, fix))
    if crowded := [file.slide_id for file in good if file.duplicates]:
        what, fix = f"two tiles at one place in {some(crowded)}", "extract these slides again"
        checks.append(Check("coordinates", "WARN", what, fix))
    detail = "on a grid, one tile per position"
    if inferred := sum(file.patch_size_inferred for file in good):
        detail += f"; tile size inferred from the spacing in {inferred} files"
    return checks or [Check("coordinates", "PASS", detail)]


# Label table: matching, patients, splits, classes.

_FEW = 10
_NO_SPLIT = "no split"
"""Slides outside all splits, whose classes do not matter."""


def _table_checks(rows: SlideRows, matched: Matched, options: CohortOptions) -> list[Check]:
    """Checks of the label table or, where there is none, of the split table."""
    notes = "".join(f"; {note}" for note in rows.notes)
    if options.labels is not None:
        found = f"{len(rows.slides)} slides in {options.labels.name}{notes}"
        checks = [Check("labels", "PASS", found), _matching(len(rows.slides), matched)]
        if not matched.slides:
            return checks
    elif options.splits is not None:
        assigned = sum(slide.split is not None for slide in rows.slides)
        checks = [Check("splits", "PASS", f"{assigned} slides in {options.splits.name}{notes}")]
    else:
        return []
    allowed = bool(options.allow_patient_overlap)
    return [*checks, check_overlap(matched.slides, allowed), *_classes(matched.slides)]


def check_overlap(slides: Sequence[Slide], allowed: bool = False) -> Check:
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
    return Check("leakage", "FAIL", found, OVERLAP_FIX, tuple(overlap))


def _matching(rows: int, matched: Matched) -> Check:
    """Every row has a feature file, and every file a row."""
    parts = []
    if matched.missing:
        names = some([slide.slide_id for slide in matched.missing])
        parts.append(f"no features for {names}; first: {matched.missing[0].reason}")
    if matched.unused:
        parts.append(f"not in the table: {some(matched.unused)}")
    if len(matched.missing) == rows:
        fix = "check slide names and, if the table has it, the column feature_path"
        return Check("matching", "FAIL", "; ".join(parts), fix)
    if parts:
        fix = "extract the missing slides or fix feature_path; files outside the table are ignored"
        return Check("matching", "WARN", "; ".join(parts), fix)
    return Check("matching", "PASS", f"every one of {rows} slides has a feature file")


def _classes(slides: Sequence[Slide]) -> list[Check]:
    """Every split has slides of every class, and not too few."""
    table: dict[str, Counter[str]] = {}
    rest = _NO_SPLIT if any(slide.split for slide in slides) else "all slides"
    for slide in slides:
        if slide.label is not None:
            table.setdefault(slide.split or rest, Counter())[slide.label] += 1
    classes = {label for counts in table.values() for label in counts}
    detail = "; ".join(f"{split}: {tally(counts)}" for split, counts in table.items())
    used = {split: counts for split, counts in table.items() if split != _NO_SPLIT}
    checks = []
    if single := [split for split, counts in used.items() if len(counts) < max(2, len(classes))]:
        what = f"a class is missing in {', '.join(single)} ({detail})"
        fix = "every split needs every class; split again, stratified by label"
        checks.append(Check("classes", "FAIL", what, fix))
    elif any(min(counts.values()) < _FEW for counts in used.values()):
        fix = f"fewer than {_FEW} slides of a class give wide intervals"
        checks.append(Check("classes", "WARN", detail, fix))
    elif table:
        checks.append(Check("classes", "PASS", detail))
    if unlabelled := [slide.slide_id for slide in slides if slide.label is None]:
        fix = "add labels, or audit the predicted class"
        checks.append(Check("unlabelled", "WARN", some(unlabelled), fix))
    return checks
