r"""Train, validation and test splits by patient.

Every stratum (a label, a site, or both) is divided among the splits by largest remainder, which
gives its quota in each. Then whole patients are assigned. Patients with the same stratum :math:`g`
and number of slides :math:`z` are interchangeable, so a placement is a table :math:`y_{gzs}`: how
many of them go to split :math:`s`. The aim is

.. math:: \sum_z z\,y_{gzs} = Q_{gs} \quad\text{and}\quad \sum_{g,z} z\,y_{gzs} = T_s

with the quota :math:`Q_{gs}` of the stratum and the size :math:`T_s` of the split, in slides.

An integer programme (``scipy.optimize.milp``) would solve this too, but which of many equally good
placements it returns may change with the solver's version. A split must never change: hence the
search below, which is deterministic.
"""

from __future__ import annotations

import hashlib
import heapq
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from math import gcd
from pathlib import Path

from foci.bags.bag import Slide, SlideRows
from foci.bags.matching import Names
from foci.bags.tables import Table
from foci.errors import CohortError
from foci.words import counted, listed

SPLITS = ("train", "val", "test")
_STRATIFIERS = ("label", "site")
_BETWEEN = " \u00d7 "

Group = tuple[str, int]
"""Stratum, and slides per patient."""

Placement = Mapping[Group, tuple[int, ...]]
"""Patients per group and split."""

Quotas = Mapping[str, Sequence[int]]
"""Slides per stratum and split."""

_Rows = tuple[tuple[int, ...], ...]
_MOST_TRIALS = 20_000


def split_by_patient(
    slides: Sequence[Slide],
    *,
    fractions: Sequence[float] | None = None,
    counts: Sequence[int] | None = None,
    seed: int = 0,
    stratify_by: str | Sequence[str] = "label",
) -> SlideRows:
    """Stratified split into train, val and test that keeps each patient in one split.

    Where a patient goes depends only on the seed and the patients' names, not on the order of the
    rows, the platform or a library's version.

    Args:
        slides: The cohort; splits it already has are replaced.
        fractions: Shares of the slides; the strata are kept, the sizes are near.
        counts: Exact numbers of slides. They are met wherever whole patients allow, if need be at
            the strata's expense, which a note then says.
        seed: Another seed, another split.
        stratify_by: ``"label"``, ``"site"``, or both; a patient counts for what most of the
            slides say.

    Raises:
        CohortError: If neither or both of ``fractions`` and ``counts`` are given, or they do not
            add up.
    """
    sizes = _sizes(len(slides), fractions, counts)
    fields = (stratify_by,) if isinstance(stratify_by, str) else tuple(stratify_by)
    if unknown := [name for name in fields if name not in _STRATIFIERS]:
        what = f"cannot be {unknown[0]!r}"
        raise CohortError("stratify_by", what, f"choose from {', '.join(_STRATIFIERS)}")

    votes: dict[str, Counter[str]] = defaultdict(Counter)
    for slide in slides:
        votes[slide.case_id][_BETWEEN.join(getattr(slide, name) or "" for name in fields)] += 1
    patients: dict[Group, list[str]] = defaultdict(list)
    for case, own in votes.items():
        stratum = min(own, key=lambda value: (-own[value], value))
        patients[stratum, own.total()].append(case)
    groups = {group: len(patients[group]) for group in sorted(patients)}
    totals: Counter[str] = Counter()
    for (stratum, size), number in groups.items():
        totals[stratum] += size * number
    quotas = stratum_quotas(totals, sizes)
    placement = fill(groups, quotas)
    if counts is not None:
        placement = meet(placement, quotas, sizes)

    split_of: dict[str, str] = {}
    for group, row in placement.items():
        drawn = sorted(
            patients[group], key=lambda case: hashlib.sha256(f"{seed}\n{case}".encode()).digest()
        )
        names = [name for name, n in zip(SPLITS, row, strict=True) for _ in range(n)]
        split_of.update(zip(drawn, names, strict=True))
    assigned = tuple(replace(slide, split=split_of[slide.case_id]) for slide in slides)

    found = Counter(slide.split for slide in assigned)
    got = [found[name] for name in SPLITS]
    notes = []
    if counts is not None and got != sizes:
        wanted, used = ("/".join(map(str, numbers)) for numbers in (sizes, got))
        notes.append(f"whole patients cannot make splits of {wanted} slides; they have {used}")
    off, largest = imbalance(placement, quotas), max(size for _, size in groups)
    if off > largest:
        by = _BETWEEN.join(fields)
        notes.append(f"to meet the split sizes, the share of a {by} is off by up to {off} slides")
    notes += [
        f"{name} is empty: there are too few patients"
        for name, size, n in zip(SPLITS, sizes, got, strict=True)
        if size and not n
    ]
    return SlideRows(assigned, tuple(notes))


def check_labels(slides: Iterable[Slide], classes: Sequence[str]) -> None:
    """Refuse a label outside the classes, and a split with a single class."""
    labels: dict[str, set[str]] = defaultdict(set)
    for slide in slides:
        if slide.label is None:
            continue
        if slide.label not in classes:
            what = f"has the label {slide.label!r}, not one of {', '.join(classes)}"
            fix = "correct the label or the classes, or leave it out: --exclude-class"
            raise CohortError(f"slide {slide.slide_id}", what, f"{fix} {slide.label}")
        if slide.split is not None:
            labels[slide.split].add(slide.label)
    for split in sorted(labels, key=split_order):
        if len(labels[split]) == 1:
            what = f"has slides of {min(labels[split])} only"
            raise CohortError(f"split {split}", what, "split again, stratified by label")


def split_order(split: str) -> tuple[int, str]:
    """Sort key: train, val and test first, in this order."""
    return (SPLITS.index(split) if split in SPLITS else len(SPLITS), split)


def _sizes(n: int, fractions: Sequence[float] | None, counts: Sequence[int] | None) -> list[int]:
    if n == 0:
        raise CohortError("cohort", "has no slides", "check the label table")
    if (counts is None) == (fractions is None):
        raise CohortError("split", "needs either fractions or counts", "give one of them")
    option, given = ("counts", counts) if fractions is None else ("fractions", fractions)
    if given is None or len(given) != len(SPLITS) or not all(number >= 0 for number in given):
        fix = "give three numbers, for train, val and test; 0 leaves a split out"
        raise CohortError(option, f"cannot be {', '.join(map(str, given or ()))}", fix)
    if counts is not None:
        if sum(counts) != n:
            what = f"add up to {sum(counts)}, but there are {n} slides"
            raise CohortError("counts", what, "give counts that add up, or fractions")
        return list(counts)
    if abs(sum(given) - 1) > 1e-6:
        raise CohortError("fractions", f"add up to {sum(given):g}, not 1", "correct them")
    return largest_remainder(n, [round(share * 10**9) for share in given])


def largest_remainder(total: int, weights: Sequence[int]) -> list[int]:
    r"""Share ``total`` in proportion to ``weights``, in whole numbers that add up.

    Everyone gets :math:`\lfloor T w_i / \sum_j w_j \rfloor`; the rest goes, one each, to the
    largest remainders, the first of equal ones.

    >>> largest_remainder(10, [1, 1, 1])
    [4, 3, 3]
    >>> largest_remainder(1053, [729, 105, 209])
    [736, 106, 211]
    """
    whole = sum(weights)
    if whole == 0:
        return [0] * len(weights)
    shares = [total * weight // whole for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda i: -(total * weights[i] % whole))
    for i in by_remainder[: total - sum(shares)]:
        shares[i] += 1
    return shares


def stratum_quotas(sizes: Mapping[str, int], counts: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Slides of every stratum for every split, so that both margins are met exactly.

    Split after split is shared among what the strata have left, by largest remainder, smallest
    split first, as rounding weighs most there. ``sizes`` are the slides per stratum, ``counts``
    those per split; both add up to the same number.

    >>> stratum_quotas({"LUAD": 6, "LUSC": 4}, (7, 1, 2))
    {'LUAD': (4, 1, 1), 'LUSC': (3, 0, 1)}
    """
    left = dict(sizes)
    quotas = {stratum: [0] * len(counts) for stratum in sizes}
    for split in sorted(range(len(counts)), key=lambda i: counts[i]):
        shares = largest_remainder(counts[split], list(left.values()))
        for stratum, share in zip(sizes, shares, strict=True):
            quotas[stratum][split] = share
            left[stratum] -= share
    return {stratum: tuple(shares) for stratum, shares in quotas.items()}


def fill(groups: Mapping[Group, int], quotas: Quotas) -> Placement:
    """Fill the quotas of every stratum: large patients first, single slides last.

    A patient goes to the split whose quota is, in proportion, emptiest; where it fits nowhere, to
    the one with most left. No quota is then missed by as much as the largest patient of the
    stratum, and with enough single slides none is missed at all. The quotas of a stratum add up to
    its slides.
    """
    left = {stratum: list(shares) for stratum, shares in quotas.items()}
    placement = {}
    for stratum, size in sorted(groups, key=lambda group: (-group[1], group[0])):
        quota, free = quotas[stratum], left[stratum]
        row = [0] * len(quota)
        for _ in range(groups[stratum, size]):
            fits = [s for s in range(len(quota)) if free[s] >= size]
            split = max(fits, key=lambda s: (2 * free[s] - size) / quota[s], default=None)
            if split is None:
                split = max(range(len(quota)), key=lambda s: free[s])
            row[split] += 1
            free[split] -= size
        placement[stratum, size] = tuple(row)
    return placement


def meet(placement: Placement, quotas: Quotas, counts: Sequence[int]) -> Placement:
    """Move patients until the splits have exactly ``counts`` slides, or as nearly as they can.

    Best-first search over moves of one patient, placements near the counts and the quotas first.
    The first search visits every combination of split sizes once, which is quick where there are
    many patients; the second visits every placement, so that for a small cohort "cannot be met"
    is a proof.
    """
    groups = tuple(placement)
    open_splits = [s for s, wanted in enumerate(counts) if wanted]
    goal = least_miss(gcd(*(size for _, size in groups)), counts)

    def score(rows: _Rows) -> tuple[int, int]:
        current = dict(zip(groups, rows, strict=True))
        return miss(current, counts), imbalance(current, quotas)

    def sizes(rows: _Rows) -> tuple[int, ...]:
        return tuple(_slides_per_split(dict(zip(groups, rows, strict=True))))

    def search(start: _Rows, state: Callable[[_Rows], object]) -> _Rows:
        """Keeps one placement per ``state``, and stops at a miss of ``goal``."""
        best, best_score = start, score(start)
        heap, seen = [(sum(best_score), start)], {state(start)}
        while heap and best_score[0] > goal and len(seen) < _MOST_TRIALS:
            _, rows = heapq.heappop(heap)
            for moved in _moves(rows, open_splits):
                if state(moved) not in seen:
                    seen.add(state(moved))
                    moved_score = score(moved)
                    heapq.heappush(heap, (sum(moved_score), moved))
                    if moved_score < best_score:
                        best, best_score = moved, moved_score
        return best

    best = search(search(tuple(placement.values()), sizes), lambda rows: rows)
    return dict(zip(groups, best, strict=True))


def _moves(rows: _Rows, splits: Sequence[int]) -> Iterator[_Rows]:
    """Every placement that moving one patient leads to."""
    for index, row in enumerate(rows):
        for source, target in permutations(splits, 2):
            if row[source]:
                changed = list(row)
                changed[source] -= 1
                changed[target] += 1
                yield (*rows[:index], tuple(changed), *rows[index + 1 :])


def _slides_per_split(placement: Placement) -> list[int]:
    rows = [[size * patients for patients in row] for (_, size), row in placement.items()]
    return [sum(column) for column in zip(*rows, strict=True)]


def miss(placement: Placement, counts: Sequence[int]) -> int:
    """Slides too many or too few, over all splits."""
    sizes = _slides_per_split(placement)
    return sum(abs(n - wanted) for n, wanted in zip(sizes, counts, strict=True))


def least_miss(unit: int, counts: Sequence[int]) -> int:
    """The smallest possible :func:`miss` where every split size is a multiple of ``unit``.

    As many splits must be rounded up as the remainders add up to; best are the largest ones.

    >>> least_miss(4, [31, 4, 9])
    2
    """
    remainders = sorted(count % unit for count in counts)
    down = len(counts) - sum(remainders) // unit
    return sum(remainders[:down]) + sum(unit - rest for rest in remainders[down:])


def imbalance(placement: Placement, quotas: Quotas) -> int:
    """Largest distance of a stratum from its quota, in slides."""
    off = {stratum: [-share for share in shares] for stratum, shares in quotas.items()}
    for (stratum, size), row in placement.items():
        for s, patients in enumerate(row):
            off[stratum][s] += size * patients
    return max(abs(slides) for shares in off.values() for slides in shares)


# Split tables, which say which slides are in which split. CLAM writes one ``splits_<k>.csv`` per
# fold, in three forms: columns ``train, val, test`` that list slide names, with or without an
# index column before them, and the ``_bool`` form, one row per slide with True and False. A table
# of ``slide_id, split`` is understood as well.

_SPLITS = {
    "train": ("train", "training"),
    "val": ("val", "valid", "validation", "tune", "dev"),
    "test": ("test", "testing"),
}
SPLIT_NAMES = {name: split for split, names in _SPLITS.items() for name in names}
"""What people call the three splits. ``eval`` is missing on purpose: it means validation to some
and test to others, and mistaking one for the other spoils a study."""


def split_name(text: str, where: str) -> str:
    """Normalise a split name to ``train``, ``val`` or ``test``.

    >>> split_name("Validation", "labels.csv, line 2")
    'val'
    """
    name = SPLIT_NAMES.get(text.lower())
    if name is None:
        what = f"split {text!r} is not train, val or test"
        if text.lower() == "eval":
            what = "split 'eval' may mean validation or test"
        raise CohortError(where, what, "write train, val or test")
    return name


def split_column(table: Table, column: str) -> list[str | None]:
    """A column of split names as train, val or test; an empty cell is None."""
    return [
        split_name(row[column], table.line(index)) if row[column] else None
        for index, row in enumerate(table.rows)
    ]


_FOLD = re.compile(r"splits_(\d+)\.csv")


def choose_splits(
    splits: str | Path | None, fold: int | None
) -> tuple[Path | None, int | None, tuple[str, ...]]:
    """The split table of a fold: the file itself, or that fold's file of a folder.

    With it come the fold, where it is still to be found in the label table, and a note on which
    fold was taken, where nobody chose one.
    """
    if splits is None or not Path(splits).is_dir():
        return None if splits is None else Path(splits), fold, ()
    files = folds_of(Path(splits))
    chosen = min(files) if fold is None else fold
    if chosen not in files:
        what = f"has no fold {chosen} (it has {', '.join(map(str, files))})"
        raise CohortError(splits, what, "choose one with --fold")
    if fold is not None or len(files) == 1:
        return files[chosen], None, ()
    note = f"fold {chosen} of {len(files)} is used; choose another with --fold"
    return files[chosen], None, (note,)


def folds_of(folder: Path) -> dict[int, Path]:
    """The split tables of a folder by fold, in order; a folder without any is refused."""
    found = {int(m[1]): p for p in folder.iterdir() if (m := _FOLD.fullmatch(p.name))}
    if not found:
        fix = "give the folder that holds them, or a split table"
        raise CohortError(folder, "holds no splits_0.csv, splits_1.csv, ...", fix)
    return dict(sorted(found.items()))


def apply_splits(slides: Sequence[Slide], table: Table, among: str) -> SlideRows:
    """Assign the splits of a split table; slides that are not in it have none.

    Slides that only the split table names are left out, with a note: published splits often
    name slides that nobody has labelled. ``among`` says where the slides come from, for messages.

    Raises:
        CohortError: If a slide is in two splits, a name fits several slides, or the split table
            names no slide of the cohort.
    """
    known = Names(slide.slide_id for slide in slides)
    chosen: dict[str, str] = {}
    unknown: list[str] = []
    for name, split in _members(table, known):
        # pandas writes a numeric name in a column with gaps as 123.0
        whole = name.removesuffix(".0")
        found = known.like(name if name in known.exact or whole not in known.exact else whole)
        if len(found) > 1:
            what = f"{name!r} fits several slides of {among} ({', '.join(sorted(found)[:3])})"
            raise CohortError(table.path, what, "write the full name into the split table")
        if not found:
            unknown.append(name)
        elif chosen.setdefault(found[0], split) != split:
            what = f"slide {found[0]!r} is in both {chosen[found[0]]} and {split}"
            raise CohortError(table.path, what, "keep it in one of them")
    n, outside = counted(len(unknown), "slide"), listed(unknown)
    if unknown and not chosen:
        what = f"none of its {n} is in {among} ({outside})"
        raise CohortError(table.path, what, "give the splits of this cohort, with its slide names")
    assigned = tuple(replace(slide, split=chosen.get(slide.slide_id)) for slide in slides)
    notes = []
    if unknown:
        notes.append(f"left out: {n} of {table.path.name} not in {among} ({outside})")
    if any(slide.split for slide in slides):
        notes.append(f"the splits of {among} are replaced by {table.path.name}")
    if left := sum(slide.split is None for slide in assigned):
        notes.append(f"{left} slides of {among} are in no split of {table.path.name}")
    return SlideRows(assigned, tuple(notes))


def _members(table: Table, known: Names) -> Iterator[tuple[str, str]]:
    """Every (slide name, split) of the table."""
    if {"slide_id", "split"} <= set(table.columns):
        pairs = zip(table.filled("slide_id"), split_column(table, "split"), strict=True)
        return ((name, split) for name, split in pairs if split is not None)
    columns = [name for name in table.columns if name.lower() in SPLIT_NAMES]
    index = [name for name in table.columns if name not in columns]
    if not columns or len(index) > 1:
        what = f"is no split table (its columns: {', '.join(table.columns)})"
        raise CohortError(table.path, what, "give columns train, val, test, or slide_id, split")
    cells = [(row, name) for row in table.rows for name in columns if row[name]]
    values = {row[name] for row, name in cells}
    where = str(table.path)
    if index and {value.lower() for value in values} <= {"true", "false"}:
        return (
            (row[index[0]], split_name(name, where))
            for row, name in cells
            if row[name].lower() == "true"
        )
    if _is_descriptor(table, index, values, known):
        what = "counts slides per class but does not name them"
        fix = "give the file without '_descriptor' in its name"
        raise CohortError(table.path, what, fix)
    return ((row[name], split_name(name, where)) for row, name in cells)


def _is_descriptor(table: Table, index: list[str], values: set[str], known: Names) -> bool:
    """CLAM's table of class counts, ``splits_0_descriptor.csv``, by its name or its content."""
    if table.path.stem.endswith("_descriptor"):
        return True
    numbered = not index or [row[index[0]] for row in table.rows] == [
        str(number) for number in range(len(table.rows))
    ]
    numbers = {value.removesuffix(".0") for value in values}
    counts = all(number.isdecimal() for number in numbers)
    return not numbered and counts and not any(known.like(number) for number in numbers)
