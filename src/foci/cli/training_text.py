"""What ``foci train`` says: how the slides are split, each epoch, and how long it will take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from foci.progress import duration
from foci.words.plural import counted

if TYPE_CHECKING:
    from foci.backbones.training import EpochReport
    from foci.backbones.training.config import TrainingConfiguration
    from foci.bags import Cohort


def split_lines(cohort: Cohort, how: str) -> Iterator[str]:
    """How the slides were split, then slides, patients and classes of every split."""
    from foci.bags.cohort.splits import SPLITS

    yield f"splits: {how}"
    for split, classes in sorted(cohort.counts().items(), key=lambda part: SPLITS.index(part[0])):
        patients = len({slide.case_id for slide in cohort if slide.split == split})
        each = ", ".join(f"{name} {classes[name]}" for name in cohort.classes)
        n = counted(sum(classes.values()), "slide")
        yield f"  {split}: {n} of {counted(patients, 'patient')} ({each})"


def splits_from(table: Cohort, configuration: TrainingConfiguration) -> str:
    """Where the splits come from.

    Args:
        table: The cohort as read, before it is split.
        configuration: With the split table, if there is one.
    """
    from foci.bags.importers.folds import choose_splits

    if all(slide.split is None for slide in table):
        return f"made by patient, 70, 10 and 20 % of each class, seed {configuration.seed}"
    path = choose_splits(configuration.splits, configuration.fold).path
    return f"as in {(configuration.labels if path is None else path).name}"


class EpochLines:
    """Say each epoch, and after the first one how long the others will take.

    Args:
        say: Called with every line.
        clock: Seconds that pass.
    """

    def __init__(
        self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.say, self.clock = say, clock
        self.done = self.total = 0
        self._began: float | None = None

    def starting(self, done: int, total: int) -> None:
        """Begin, after ``done`` of ``total`` epochs."""
        self.done, self.total, self._began = done, total, self.clock()
        if done:
            self.say(f"going on after {done} of {counted(total, 'epoch')}")

    def __call__(self, epoch: EpochReport) -> None:
        """Say one epoch."""
        self.done += 1
        self.say(_line(epoch))
        if self._began is None:
            return
        seconds, left = self.clock() - self._began, self.total - self.done
        self._began = None
        if left:
            self.say(
                f"one epoch took {duration(seconds)}: about {duration(left * seconds)} for "
                f"{counted(left, 'more epoch')}; Ctrl-C keeps every finished epoch, and the same "
                "command goes on"
            )

    @property
    def stopped(self) -> str:
        """What a run that was stopped leaves, and how to go on."""
        if not self.done:
            return "stopped before the first epoch was finished; give the same command again"
        kept = f"{self.done} of {counted(self.total, 'epoch')}"
        return f"stopped after {kept}, which are kept; give the same command again to go on"


def _line(epoch: EpochReport) -> str:
    """One epoch in one line."""
    terms = ", ".join(f"{name} {value:.3f}" for name, value in epoch.terms.items())
    width = len(str(epoch.epochs))
    return (
        f"{epoch.stage} {epoch.epoch:>{width}}/{epoch.epochs}  loss {epoch.loss:.3f} ({terms})  "
        f"val loss {epoch.val_loss:.3f}  val accuracy {epoch.val_accuracy:.3f}"
        f"{'  best' if epoch.best else ''}"
    )
