"""Cohort: slides with patients, labels and splits, and their bags on demand."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, NonNegativeInt, PositiveFloat, PositiveInt

from foci.bags.bag import Bag, Skipped, Slide, SlideRows, by_patient
from foci.bags.importers import Outcomes, read_slides
from foci.bags.matching import Matched, find_features, match
from foci.bags.splits import check_labels, split_by_patient, split_order
from foci.bags.store import BagCache, BagStore, BagStream
from foci.bags.tables import write_csv
from foci.errors import CohortError
from foci.files.hashes import stamp
from foci.progress import track
from foci.words import counted, listed

COLUMNS = ("slide_id", "case_id", "label", "split", "site", "slide_path", "feature_path")


@dataclass(frozen=True, repr=False)
class Cohort:
    """Slides with patients, labels and splits; features are read on demand.

    Attributes:
        slides: The rows, in table order.
        classes: Class names; a label's index in it is the class index of the model.
        skipped: Rows left out, each with its reason.
        notes: What was assumed while reading, in plain sentences.
        store: Reads the bags.
        outcomes: Columns of numbers that were read in the place of a class.
    """

    slides: tuple[Slide, ...]
    classes: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()
    store: BagStore = field(default_factory=BagStore)
    outcomes: Outcomes | None = None

    @classmethod
    def read(
        cls,
        features: str | Path,
        labels: str | Path | None = None,
        *,
        splits: str | Path | None = None,
        slide_table: str | Path | None = None,
        label_column: str | None = None,
        fold: int | None = None,
        only_classes: Sequence[str] | None = None,
        exclude_class: Sequence[str] | None = None,
        allow_patient_overlap: bool = False,
        classes: Sequence[str] | None = None,
        layout: str = "auto",
        n_cap: int | None = None,
        mpp: float | None = None,
        cache: BagCache | str | Path | bool = True,
        keep: int = 1024,
        outcomes: Outcomes | None = None,
    ) -> Cohort:
        """Read a label table and find the feature file of every slide; no features are read yet.

        Args:
            features: Folder of feature files, in any layout FOCI knows.
            labels: Label table: FOCI's own, CLAM's, Patho-Bench's, STAMP's clinical table or
                torchmil's splits. Without one every feature file becomes a slide without a label.
            splits: CLAM's ``splits_k.csv``, a folder of these, or ``slide_id, split``; also
                without a label table.
            slide_table: STAMP's slide table.
            label_column: The column that holds the label, where the format leaves it open.
            fold: Which fold of a folder of splits, or of a Patho-Bench table.
            only_classes: Keep the slides of these classes only.
            exclude_class: Leave out the slides of these classes.
            allow_patient_overlap: Continue, with a warning, where a patient is in two splits.
            classes: Class names in model order; default is alphabetical.
            layout: Force a feature layout.
            n_cap: Most candidate tiles per bag, those with the largest features; None for all, or
                for as many as a model of ``foci train`` was trained with.
            mpp: Micrometres per level-0 pixel, for layouts that measure in micrometres.
            cache: True for the user's cache folder, a folder, or False.
            keep: Most bags held in memory at any time, of 512 MB together.
            outcomes: Columns of the label table that hold numbers in the place of a class.

        Raises:
            CohortError: If the table is wrong, a patient is in two splits (unless allowed), a label
                is not among the classes, or no slide has features.
        """
        files = find_features(features)
        rows, matched = find_slides(
            files,
            labels,
            splits=splits,
            slide_table=slide_table,
            label_column=label_column,
            fold=fold,
            only_classes=only_classes,
            exclude_class=exclude_class,
            outcomes=outcomes,
        )
        slides, skipped, notes = matched.slides, matched.missing, rows.notes
        if matched.unused:
            notes += (f"{len(matched.unused)} feature files are in no row of the table",)
        if not slides:
            first = skipped[0]
            raise CohortError(
                labels or features,
                f"none of its slides has a feature file (first: {first.slide_id}, {first.reason}; "
                f"first file: {next(iter(files))})",
                "check slide names and feature_path",
            )
        overlap = overlapping_patients(slides) if allow_patient_overlap else {}
        if overlap:
            notes += (warning(overlap),)
        else:
            check_leakage(slides)
        names = tuple(sorted({s.label for s in slides if s.label is not None}))
        if outcomes is not None and outcomes.kind == "labels":
            names = outcomes.columns
        if classes is not None:
            names = tuple(classes)
            check_labels(slides, names)
        disk = BagCache() if cache is True else cache if isinstance(cache, BagCache) else None
        if isinstance(cache, (str, Path)):
            disk = BagCache(cache)
        store = BagStore(n_cap=n_cap, layout=layout, mpp=mpp, cache=disk, keep=keep)
        return cls(slides, names, skipped, notes, store, outcomes)

    def __repr__(self) -> str:
        labels = Counter(s.label for s in self.slides)
        classes = ", ".join(f"{name} {labels[name]}" for name in self.classes)
        if labels[None]:
            classes += f"{', ' if classes else ''}unlabelled {labels[None]}"
        splits = Counter(s.split or "no split" for s in self.slides if self._is_split)
        ordered = sorted(splits, key=split_order)
        patients = len({s.case_id for s in self.slides})
        parts = [
            counted(len(self), "slide"),
            counted(patients, "patient"),
            f"classes: {classes or 'none'}",
            f"splits: {', '.join(f'{name} {splits[name]}' for name in ordered) or 'none'}",
        ]
        if self.skipped:
            parts.append(f"{len(self.skipped)} skipped")
        return f"Cohort({'; '.join(parts)})"

    def __len__(self) -> int:
        return len(self.slides)

    def __iter__(self) -> Iterator[Slide]:
        return iter(self.slides)

    def __getitem__(self, slide_id: str) -> Slide:
        if slide_id not in self._by_id:
            raise CohortError(slide_id, "is not in the cohort", "check the slide's name")
        return self._by_id[slide_id]

    @cached_property
    def _by_id(self) -> dict[str, Slide]:
        return {slide.slide_id: slide for slide in self.slides}

    @property
    def _is_split(self) -> bool:
        return any(slide.split for slide in self.slides)

    def split(self, name: str) -> Cohort:
        """The slides of one split; they share the parent's store."""
        slides = tuple(s for s in self.slides if s.split == name)
        if not slides:
            known = ", ".join(sorted({s.split for s in self.slides if s.split})) or "none"
            what = f"has no slides (splits: {known})"
            raise CohortError(f"split {name!r}", what, "split the cohort first")
        return replace(self, slides=slides)

    def with_splits(
        self,
        fractions: tuple[float, float, float] = (0.7, 0.1, 0.2),
        *,
        counts: tuple[int, int, int] | None = None,
        seed: int = 0,
    ) -> Cohort:
        """Split by patient, stratified by label, into train, val and test."""
        result = split_by_patient(
            self.slides, fractions=None if counts else fractions, counts=counts, seed=seed
        )
        return replace(self, slides=result.slides, notes=self.notes + result.notes)

    def with_classes(self, names: Sequence[str]) -> Cohort:
        """The same slides with these class names, in this order; other labels are refused.

        Unlike :meth:`read` with ``classes``, a split with slides of a single class is accepted: it
        can be audited, only without an AUC.
        """
        check_labels([replace(slide, split=None) for slide in self], names)
        slides = self.slides
        if sorted(names) == sorted(self.classes) and any(slide.outcome for slide in slides):
            order = [self.classes.index(name) for name in names]
            slides = tuple(
                replace(slide, outcome=tuple(slide.outcome[place] for place in order))
                if slide.outcome
                else slide
                for slide in slides
            )
        return replace(self, slides=slides, classes=tuple(names))

    def by_patient(self) -> Cohort:
        """The same cohort with all slides of a patient as one bag, named after the patient."""
        rows = by_patient(self.slides)
        note = (
            f"bags are patients: {counted(len(rows), 'patient')} of {counted(len(self), 'slide')}"
        )
        return replace(self, slides=rows, notes=(*self.notes, note))

    def bag(self, slide_id: str) -> Bag:
        """The candidate tiles of one slide."""
        return self.store.bag(self[slide_id])

    def bags(self) -> BagStream:
        """Iterate over all bags, one at a time; bad ones are listed in ``.skipped``."""
        return BagStream(self.store, self.slides)

    def readable(self) -> Cohort:
        """Read every bag once, which fills the cache, and leave out the bad slides."""
        stream = self.bags()
        good = {bag.slide_id for bag in track(stream, "reading bags")}
        if not good:
            first = stream.skipped[0].reason if stream.skipped else "it has no slides"
            raise CohortError("cohort", f"no slide can be read ({first})", "run foci doctor")
        slides = tuple(s for s in self.slides if s.slide_id in good)
        return replace(self, slides=slides, skipped=(*self.skipped, *stream.skipped))

    def target(self, slide_id: str) -> int:
        """Class index of a slide's label."""
        label = self[slide_id].label
        if label is None:
            raise CohortError(slide_id, "has no label", "add it to the label table")
        return self.classes.index(label)

    def counts(self) -> dict[str, Counter[str]]:
        """Slides per class, by split; ``"all"`` if no slide has one, else ``"no split"``."""
        table: dict[str, Counter[str]] = {}
        rest = "no split" if self._is_split else "all"
        for slide in self.slides:
            table.setdefault(slide.split or rest, Counter())[slide.label or "unlabelled"] += 1
        return table

    def to_csv(self, path: str | Path) -> None:
        """Write the tidy table with absolute paths; columns without any entry are left out."""
        rows = [
            {key: str(v.resolve()) if isinstance(v, Path) else v or "" for key, v in row.items()}
            for row in map(asdict, self.slides)
        ]
        used = [c for c in COLUMNS if c in COLUMNS[:4] or any(row[c] for row in rows)]
        write_csv(Path(path), used, [{c: row[c] for c in used} for row in rows])


class CohortOptions(BaseModel):
    """The arguments of :meth:`Cohort.read` that every command has.

    Where ``classes`` or ``n_cap`` is None, it is the model's own. ``time`` and ``event``, ``value``
    or ``label_columns`` name columns of numbers, which take the place of a class. With ``bag``
    patient, all slides of a patient are one bag. With ``no_cache`` large feature files are read
    each time, instead of a copy of the tiles that are kept.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    features: Path
    labels: Path | None = None
    splits: Path | None = None
    slide_table: Path | None = None
    label_column: str | None = None
    fold: NonNegativeInt | None = None
    only_classes: tuple[str, ...] | None = None
    exclude_class: tuple[str, ...] | None = None
    allow_patient_overlap: bool | None = None
    classes: tuple[str, ...] | None = None
    layout: str = "auto"
    mpp: PositiveFloat | None = None
    time: str | None = None
    event: str | None = None
    value: str | None = None
    label_columns: tuple[str, ...] | None = None
    bag: Literal["slide", "patient"] = "slide"
    n_cap: PositiveInt | None = None
    no_cache: bool = False

    def table(self) -> dict[str, Any]:
        """The options that say which slides there are: arguments of :func:`find_slides`."""
        names = ("labels", "splits", "slide_table", "label_column", "fold", "only_classes")
        return {name: getattr(self, name) for name in (*names, "exclude_class")} | {
            "outcomes": Outcomes.named(self.time, self.event, self.value, self.label_columns)
        }

    def read(self, *, n_cap: int | None = None, classes: Sequence[str] = ()) -> Cohort:
        """Read the cohort; the model's tile cap and classes count where the options have none."""
        cohort = Cohort.read(
            self.features,
            **self.table(),
            allow_patient_overlap=bool(self.allow_patient_overlap),
            layout=self.layout,
            n_cap=self.n_cap or n_cap,
            mpp=self.mpp,
            cache=not self.no_cache,
        )
        names = self.classes or classes
        cohort = cohort.with_classes(names) if names else cohort
        return cohort.by_patient() if self.bag == "patient" else cohort


# Which slides there are: rows of the label table with a feature file, of the wanted classes.


def find_slides(
    files: Mapping[str, Path],
    labels: str | Path | None = None,
    *,
    only_classes: Sequence[str] | None = None,
    exclude_class: Sequence[str] | None = None,
    outcomes: Outcomes | None = None,
    **tables: Any,
) -> tuple[SlideRows, Matched]:
    """Read the label table and match its rows to files; without one every file is a slide.

    Slides of classes that are not wanted are left out after the match, so that their feature files
    do not count as files without a row. ``tables`` are further arguments of
    :func:`foci.bags.importers.read_slides`.
    """
    if labels is None:
        needing = {"--only-classes": only_classes, "--exclude-class": exclude_class}
        if outcomes is not None:
            needing[outcomes.option] = outcomes.columns[:1]
        for option, names in needing.items():
            if names:
                fix = "give the label table, or leave it out"
                raise CohortError(f"{option} {','.join(names)}", "needs --labels", fix)
        rows = read_slides(files, **tables)
        return rows, Matched(rows.slides, (), ())
    rows = read_slides(labels, **tables) if outcomes is None else outcomes.read(labels, **tables)
    matched = match(rows.slides, files)
    kept, notes = choose_classes(rows.slides, only_classes, exclude_class)
    wanted = {slide.slide_id for slide in kept}
    matched = replace(
        matched,
        slides=tuple(slide for slide in matched.slides if slide.slide_id in wanted),
        missing=tuple(slide for slide in matched.missing if slide.slide_id in wanted),
    )
    check_class_names({slide.label for slide in kept if slide.label is not None}, labels)
    return SlideRows(kept, rows.notes + notes), matched


def check_class_names(names: Collection[str], table: str | Path) -> None:
    """Refuse labels that are no classes: NaN, and one number written in two ways.

    >>> check_class_names({"1", "1.0"}, "labels.csv")
    Traceback (most recent call last):
    foci.errors.CohortError: labels.csv: writes one label in two ways: '1' and '1.0'; write one ...
    """
    numbers: dict[float, str] = {}
    for name in sorted(names):
        try:
            number = float(name)
        except ValueError:
            continue
        if math.isnan(number):
            fix = "leave the cell empty, or leave these slides out with --exclude-class"
            raise CohortError(table, f"has the label {name!r}, which is no class", fix)
        if number in numbers:
            what = f"writes one label in two ways: {numbers[number]!r} and {name!r}"
            raise CohortError(table, what, "write one of them")
        numbers[number] = name


def choose_classes(
    slides: Sequence[Slide], only: Sequence[str] | None, exclude: Sequence[str] | None
) -> tuple[tuple[Slide, ...], tuple[str, ...]]:
    """Slides of the wanted classes, and notes on how many of each other class are left out.

    With classes to keep, slides without a label go; with classes to exclude, they stay.
    """
    if not only and not exclude:
        return tuple(slides), ()
    known = sorted({slide.label for slide in slides if slide.label is not None})
    for option, names in (("--only-classes", only or ()), ("--exclude-class", exclude or ())):
        for name in names:
            if name not in known:
                what = f"is no class of the label table ({', '.join(known) or 'it has none'})"
                raise CohortError(f"{option} {name}", what, "write it as in the table")
    wanted = set(only or known) - set(exclude or ())
    kept = tuple(s for s in slides if (not only if s.label is None else s.label in wanted))
    if not any(slide.label in wanted for slide in kept):
        raise CohortError("--exclude-class", "leaves no class over", "keep at least one")
    left_out = Counter(slide.label for slide in slides) - Counter(slide.label for slide in kept)
    notes = tuple(
        f"left out: {counted(n, 'slide')} {'without a label' if name is None else f'of {name}'}, "
        f"by {'--only-classes' if only else '--exclude-class'}"
        for name, n in left_out.items()
    )
    return kept, notes


# Patients whose slides are in more than one split.

WARNING = "patient overlap: "
"""How the note on these patients begins, wherever it is shown."""

OVERLAP_FIX = (
    "put all slides of a patient into one split, or split again by patient, or keep these "
    "patients: --allow-patient-overlap"
)

PatientOverlap = Mapping[str, tuple[str, ...]]
"""Splits of every patient in more than one split, by patient."""


def line_of(note: str) -> str:
    """A note as it is printed: one on patient overlap is a warning."""
    return f"{'WARNING' if note.startswith(WARNING) else 'note'}: {note}"


def overlapping_patients(slides: Iterable[Slide]) -> PatientOverlap:
    """Patients in two or more splits, with these splits; in the order of the table."""
    splits: dict[str, set[str]] = defaultdict(set)
    for slide in slides:
        if slide.split is not None:
            splits[slide.case_id].add(slide.split)
    return {
        case: tuple(sorted(own, key=split_order)) for case, own in splits.items() if len(own) > 1
    }


def check_leakage(slides: Iterable[Slide]) -> None:
    """Refuse a cohort in which a patient is in two splits."""
    overlap = overlapping_patients(slides)
    if overlap:
        case, names = next(iter(overlap.items()))
        more = f" (and {len(overlap) - 1} more patients)" if len(overlap) > 1 else ""
        what = f"is in {' and '.join(names)}{more}"
        raise CohortError(f"patient {case}", what, f"{OVERLAP_FIX} (foci doctor lists them)")


def warning(overlap: PatientOverlap) -> str:
    """The note on these patients, in one sentence with what it means for the numbers."""
    cases = [f"{case} ({' and '.join(names)})" for case, names in overlap.items()]
    verb = "is" if len(overlap) == 1 else "are"
    return (
        f"{WARNING}{counted(len(overlap), 'patient')} {verb} in two splits ({listed(cases)}), as "
        "--allow-patient-overlap allows: what is measured on their slides is too good, because the "
        "model has seen the same patients"
    )


# What the bags of a cohort depend on, without reading a file.


def stamps(cohort: Cohort) -> list[list[list[Any]]]:
    """``[name, bytes, nanoseconds]`` of every file that a slide's bag depends on, by slide.

    The folder is left out: features that were moved, with their times, are the same features. A
    missing file has only its name.
    """
    return [[stamp(file) for file in _files(cohort, slide)] for slide in cohort]


def files_read(cohort: Cohort) -> list[Path]:
    """Every file that the bags of a cohort depend on."""
    return [file for slide in cohort for file in _files(cohort, slide)]


def what_is_read(cohort: Cohort) -> list[Any]:
    """Everything that the bags and labels of a cohort depend on, for the key of a run."""
    store = cohort.store
    rows = [[slide.slide_id, slide.label, *slide.outcome] for slide in cohort]
    return [rows, stamps(cohort), cohort.classes, store.n_cap, store.layout, store.mpp]


def _files(cohort: Cohort, slide: Slide) -> list[Path]:
    if slide.parts:
        return [file for part in slide.parts for file in _files(cohort, part)]
    path = slide.feature_path
    return [] if path is None else [path, *cohort.store.read_beside(path)]
