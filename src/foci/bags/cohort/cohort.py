"""Cohort: slides with patients, labels and splits, and their bags on demand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path

from foci.bags.bag import Bag
from foci.bags.cache import BagCache
from foci.bags.cohort.feature_folder import find_features
from foci.bags.cohort.inputs import find_slides
from foci.bags.cohort.patient_overlap import check_leakage, overlapping_patients, warning
from foci.bags.cohort.slide import Skipped, Slide
from foci.bags.cohort.splits import check_labels, split_by_patient, split_order
from foci.bags.prefilter import N_CAP
from foci.bags.store import BagStore, BagStream
from foci.bags.tables import write_csv
from foci.errors import CohortError
from foci.progress import Progress
from foci.words.plural import counted

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
    """

    slides: tuple[Slide, ...]
    classes: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()
    store: BagStore = field(default_factory=BagStore)

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
        n_cap: int | None = N_CAP,
        mpp: float | None = None,
        cache: BagCache | str | Path | bool = True,
        keep: int = 16,
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
            allow_patient_overlap: Go on, with a warning, where a patient is in two splits.
            classes: Class names in model order; default is alphabetical.
            layout: Force a feature layout.
            n_cap: Most candidate tiles per bag.
            mpp: Micrometres per level-0 pixel, for layouts that measure in micrometres.
            cache: True for the user's cache folder, a folder, or False.
            keep: Most bags held in memory at any time.

        Raises:
            CohortError: If the table is wrong, a patient is in two splits (unless allowed), a label
                is not among the classes, or no slide has features.
        """
        files = find_features(features)
        imported, matched = find_slides(
            files,
            labels,
            splits=splits,
            slide_table=slide_table,
            label_column=label_column,
            fold=fold,
            only_classes=only_classes,
            exclude_class=exclude_class,
        )
        slides, skipped, notes = matched.slides, matched.missing, imported.notes
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
        if classes is not None:
            names = tuple(classes)
            check_labels(slides, names)
        disk = BagCache() if cache is True else cache if isinstance(cache, BagCache) else None
        if isinstance(cache, (str, Path)):
            disk = BagCache(cache)
        store = BagStore(n_cap=n_cap, layout=layout, mpp=mpp, cache=disk, keep=keep)
        return cls(slides, names, skipped, notes, store)

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
            raise CohortError(
                f"split {name!r}", f"has no slides (splits: {known})", "split the cohort first"
            )
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
        return replace(self, slides=tuple(result.slides), notes=self.notes + tuple(result.notes))

    def with_classes(self, names: Sequence[str]) -> Cohort:
        """The same slides with these class names, in this order; other labels are refused.

        Unlike :meth:`read` with ``classes``, a split with slides of a single class is accepted: it
        can be audited, only without an AUC.
        """
        check_labels([replace(slide, split=None) for slide in self], names)
        return replace(self, classes=tuple(names))

    def bag(self, slide_id: str) -> Bag:
        """The candidate tiles of one slide."""
        return self.store.bag(self[slide_id])

    def bags(self) -> BagStream:
        """Iterate over all bags, one at a time; bad ones are listed in ``.skipped``."""
        return BagStream(self.store, self.slides)

    def readable(self, progress: Progress = lambda items, what: items) -> Cohort:
        """Read every bag once, which fills the cache, and leave out the bad slides."""
        stream = self.bags()
        good = {bag.slide_id for bag in progress(stream, "reading bags")}
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
        rows = [{key: _cell(value) for key, value in asdict(s).items()} for s in self.slides]
        used = [c for c in COLUMNS if c in COLUMNS[:4] or any(row[c] for row in rows)]
        write_csv(Path(path), used, [{c: row[c] for c in used} for row in rows])


def _cell(value: str | Path | None) -> str:
    if value is None:
        return ""
    return str(value.resolve()) if isinstance(value, Path) else value
