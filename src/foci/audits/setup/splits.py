"""Which slides a selector is fitted on, and which are audited: never the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace

from foci.audits.folder.slides import AuditedSlide
from foci.audits.settings import AuditSettings
from foci.backbones.training.run import with_train_and_val
from foci.bags import Cohort
from foci.bags.cohort.splits import SPLITS
from foci.errors import CohortError
from foci.plural import counted
from foci.progress import Progress

FITTING = ("train", "val")


@dataclass(frozen=True)
class SplitSlides:
    """The slides of an audit, by what they are for.

    Attributes:
        fitting: Splits ``train`` and ``val``, all readable; None if no selector is fitted.
        audited: The slides to audit, read or not.
        skipped: Slides that were left out so far.
        notes: What was assumed.
    """

    fitting: Cohort | None
    audited: Cohort
    skipped: tuple[AuditedSlide, ...]
    notes: tuple[str, ...]

    def count(self, split: str) -> int:
        """Slides of a split that a selector was fitted on."""
        return sum(slide.split == split for slide in self.fitting or ())


def check_splits(cohort: Cohort, settings: AuditSettings) -> None:
    """Refuse splits that cannot be used, before anything is read."""
    present = {slide.split for slide in cohort} - {None}
    if not present and settings.fits_selectors:
        present = {*SPLITS}  # will be made
    if present and settings.split not in present:
        cohort.split(settings.split)
    if settings.fits_selectors and "train" not in present:
        raise CohortError(
            "cohort",
            "has no slides in split 'train', which the selector is fitted on",
            "add them, or leave the selector out of the rankings",
        )


def split_slides(
    cohort: Cohort, settings: AuditSettings, split_seed: int, progress: Progress
) -> SplitSlides:
    """Divide a cohort; where a selector is fitted, read its slides once and set the bad aside.

    A cohort without splits is split as ``foci train`` does it (bad slides first, then by patient),
    so that the same seed gives the same split.
    """
    unsplit = all(slide.split is None for slide in cohort)
    if not settings.fits_selectors:
        audited = cohort if unsplit else cohort.split(settings.split)
        note = "the cohort has no splits: every slide is audited, also those it was trained on"
        notes = (*cohort.notes, *([note] if unsplit else _left_out(cohort, settings)))
        return SplitSlides(None, audited, _skipped(cohort, cohort), notes)
    whole = ready_to_fit(cohort, split_seed, progress)
    fitting = replace(whole, slides=tuple(s for s in whole if s.split in FITTING))
    notes = (*whole.notes, *_left_out(whole, settings))
    return SplitSlides(fitting, whole.split(settings.split), _skipped(whole, cohort), notes)


def ready_to_fit(cohort: Cohort, split_seed: int, progress: Progress) -> Cohort:
    """A cohort with splits ``train`` and ``val`` whose slides were read once, the bad set aside.

    Slides that no selector is fitted on are left unread, unless the split has still to be made.
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


def already_seen(audited: Cohort, trained_on: Collection[str]) -> tuple[str, ...]:
    """A sentence where slides are audited that the model was trained on."""
    n = sum(slide.slide_id in trained_on for slide in audited)
    if not n:
        return ()
    which = f"{n} of the {len(audited)} audited slides are among those that the model was trained"
    return (f"{which} on: what is measured there does not carry over to new slides",)


def _skipped(found: Cohort, table: Cohort) -> tuple[AuditedSlide, ...]:
    rows = {slide.slide_id: slide for slide in table}
    return tuple(
        AuditedSlide(
            slide_id=entry.slide_id,
            case_id=rows[entry.slide_id].case_id if entry.slide_id in rows else entry.slide_id,
            label=rows[entry.slide_id].label if entry.slide_id in rows else None,
            skipped=entry.reason,
        )
        for entry in found.skipped
    )


def _left_out(cohort: Cohort, settings: AuditSettings) -> list[str]:
    others = Counter(s.split for s in cohort if s.split not in (*FITTING, settings.split))
    return [
        f"left out: {counted(n, 'slide')} in {'no split' if split is None else f'split {split}'}"
        for split, n in others.items()
    ]
