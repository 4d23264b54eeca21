"""Cohorts of the paper's three tasks, from the files that TCGA and PANDA publish."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from foci.bags.cohort.quotas import largest_remainder
from foci.bags.cohort.slide import Slide
from foci.bags.cohort.splits import split_by_patient
from foci.bags.cohort.tcga import without_uuid
from foci.bags.tasks import brca, nsclc, panda
from foci.bags.tasks.task import BuiltCohort, Source, Task, parse_source
from foci.errors import CohortError
from foci.registry import Registry

__all__ = ["TASKS", "BuiltCohort", "Source", "Task", "build"]

TASKS: Registry[Task] = Registry("task")
TASKS.add("nsclc", nsclc.TASK)
TASKS.add("brca", brca.TASK)
TASKS.add("panda", panda.TASK)


def build(task: str, sources: Sequence[str], *, seed: int = 0, split: bool = True) -> BuiltCohort:
    """Slides, labels and splits of one of the paper's tasks.

    Args:
        task: ``"nsclc"``, ``"brca"`` or ``"panda"``.
        sources: Files or folders: GDC sample sheets and manifests, folders of published UNI2-h
            features, PANDA's ``train.csv``; ``LABEL=PATH`` where a source does not tell the class.
        seed: Seed of the split.
        split: Whether to divide into train, val and test, by patient, in the paper's sizes;
            another number of slides is divided in the same proportion.

    Raises:
        CohortError: If a source is not understood, a slide is given twice, or a class is missing.
    """
    chosen = TASKS[task]
    slides: list[Slide] = []
    origins: list[str] = []
    notes: list[str] = []
    for text in sources:
        part = chosen.read(parse_source(text, chosen.classes))
        slides += part.slides
        origins += [text] * len(part.slides)
        notes += part.notes
    _refuse_repeats(slides, origins)
    missing = [name for name in chosen.classes if name not in {slide.label for slide in slides}]
    if missing:
        what = f"has no slides of {' and '.join(missing)}"
        raise CohortError(f"task {task}", what, "add the source of that class")
    if split:
        counts = list(chosen.counts)
        if len(slides) != sum(counts):
            counts = largest_remainder(len(slides), counts)
            sizes = "/".join(map(str, counts))
            notes.append(
                f"{len(slides)} slides, where the paper has {sum(chosen.counts)}: its split sizes "
                f"are scaled to {sizes}"
            )
        parts = split_by_patient(slides, counts=counts, seed=seed, stratify_by=chosen.stratify_by)
        slides, notes = parts.slides, [*notes, *parts.notes]
    return BuiltCohort(tuple(slides), tuple(notes))


def _refuse_repeats(slides: Sequence[Slide], origins: Sequence[str]) -> None:
    """The same name twice, or once with and once without its UUID, is the same slide.

    Two UUIDs of one barcode are two files, and TCGA has such pairs.
    """
    alike: dict[str, list[int]] = defaultdict(list)
    for index, slide in enumerate(slides):
        alike[without_uuid(slide.slide_id)].append(index)
    for short, indices in alike.items():
        names = [slides[index].slide_id for index in indices]
        if len(names) > 1 and (short in names or len(set(names)) < len(names)):
            where = " and ".join(dict.fromkeys(origins[index] for index in indices))
            raise CohortError(where, f"slide {short!r} is given twice", "keep one of them")
