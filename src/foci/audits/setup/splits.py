"""Divide a cohort into slides for fitting selectors and slides to audit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace

from foci.audits.folder.slides import AuditedSlide
from foci.audits.settings import AuditSettings
from foci.backbones.training.run import with_train_and_val
from foci.bags import Cohort
from foci.bags.cohort.slide import many_skipped
from foci.bags.cohort.splits import SPLITS
from foci.errors import CohortError
from foci.progress import Progress
from foci.words.plural import counted

FITTING = ("train", "val")


@dataclass(frozen=True)
class SplitSlides:
    """Slides of an audit by use: fitting, audit, skipped.

    Attributes:
        fitting: Readable slides of ``train`` and ``val``; None if no selector is fitted.
        audited: Slides to audit; they may not have been read yet.
        skipped: Slides that were skipped so far.
        notes: Assumptions, as sentences for the report.
    """

    fitting: Cohort | None
    audited: Cohort
    skipped: tuple[AuditedSlide, ...]
    notes: tuple[str, ...]

    def count(self, split: str) -> int:
        """Number of slides of a split that selectors are fitted on."""
        return sum(slide.split == split for slide in self.fitting or ())


def check_splits(cohort: Cohort, settings: AuditSettings, *, fits: bool = True) -> None:
    """Check that the cohort has the splits that the audit needs; no file is read.

    Args:
        cohort: The slides.
        settings: Of the audit.
        fits: Whether selectors are fitted in the audit; False where they are given.
    """
    present = {slide.split for slide in cohort} - {None}
    if not present and settings.fits_selectors:
        present = {*SPLITS}  # split_slides will make them
    if present and settings.split not in present:
        cohort.split(settings.split)
    if settings.fits_selectors and fits and "train" not in present:
        raise CohortError(
            "cohort",
            "has no slides in split 'train', which the selector is fitted on",
            "add them, or leave the selector out of the rankings",
        )


def split_slides(
    cohort: Cohort,
    settings: AuditSettings,
    split_seed: int,
    progress: Progress,
    *,
    fits: bool = True,
) -> SplitSlides:
    """Divide a cohort into fitting and audited slides; skip unreadable slides for fitting.

    A cohort without splits is split as in ``foci train`` (remove unreadable slides, then split by
    patient), so that the same seed gives the same split.

    Args:
        cohort: As read from its table.
        settings: Of the audit.
        split_seed: Of the patient split.
        progress: Around the reading of slides to fit on.
        fits: Whether selectors are fitted in the audit; False where they are given: then only the
            audited slides matter, and a split is made if there is none.
    """
    unsplit = all(slide.split is None for slide in cohort)
    if not settings.fits_selectors or not (fits or unsplit):
        audited = cohort if unsplit else cohort.split(settings.split)
        note = (
            "the cohort has no splits: every slide is audited, even if the model was trained on it"
        )
        notes = (*cohort.notes, *([note] if unsplit else _left_out(cohort, settings)))
        return SplitSlides(None, audited, _skipped(cohort, cohort), notes)
    whole = ready_to_fit(cohort, split_seed, progress)
    fitting = replace(whole, slides=tuple(s for s in whole if s.split in FITTING))
    notes = (*whole.notes, *_left_out(whole, settings))
    own = fitting if fits else None
    return SplitSlides(own, whole.split(settings.split), _skipped(whole, cohort), notes)


def ready_to_fit(cohort: Cohort, split_seed: int, progress: Progress) -> Cohort:
    """Read the slides of ``train`` and ``val`` once, skip unreadable ones, make missing splits.

    Other slides are not read, unless the split has still to be made.
    """
    unsplit = all(slide.split is None for slide in cohort)
    needed = [s for s in cohort if unsplit or s.split in FITTING]
    read = replace(cohort, slides=tuple(needed)).readable(progress)
    good = {slide.slide_id for slide in read}
    wanted = {slide.slide_id for slide in needed}
    rest = tuple(s for s in cohort if s.slide_id in good or s.slide_id not in wanted)
    whole = with_train_and_val(replace(read, slides=rest), split_seed)
    if not unsplit:
        return whole
    note = "the cohort has no splits: divided by patient into train, val and test"
    return replace(whole, notes=(*whole.notes, f"{note} (70, 10 and 20 %, seed {split_seed})"))


def many_left_out(cohort: Cohort, audited: int, skipped: Collection[str]) -> str | None:
    """A sentence if more than 10 % of the audited slides, or of all rows, were skipped.

    Args:
        cohort: As it was read, before unreadable slides were set aside.
        audited: Number of audited slides.
        skipped: Names of all skipped slides.
    """
    wanted = sum(s.slide_id in skipped and s.split not in FITTING for s in cohort)
    rows = len(cohort) + len(cohort.skipped)
    of_audited = many_skipped(wanted, wanted + audited, "slides to audit")
    return of_audited or many_skipped(len(skipped), rows)


def _skipped(checked: Cohort, table: Cohort) -> tuple[AuditedSlide, ...]:
    rows = {slide.slide_id: slide for slide in table}
    return tuple(
        AuditedSlide(
            slide_id=entry.slide_id,
            case_id=rows[entry.slide_id].case_id if entry.slide_id in rows else entry.slide_id,
            label=rows[entry.slide_id].label if entry.slide_id in rows else None,
            skipped=entry.reason,
        )
        for entry in checked.skipped
    )


def _left_out(cohort: Cohort, settings: AuditSettings) -> list[str]:
    others = Counter(s.split for s in cohort if s.split not in (*FITTING, settings.split))
    return [
        f"left out: {counted(n, 'slide')} in {'no split' if split is None else f'split {split}'}"
        for split, n in others.items()
    ]
