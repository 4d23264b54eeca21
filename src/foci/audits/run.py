"""Run an audit: fit selectors, reveal every slide, write the audit folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from foci.atomic import write_whole
from foci.audits.analysis.csv_tables import write_tables
from foci.audits.analysis.summarise import summarise
from foci.audits.analysis.summary import Summary
from foci.audits.audit import StoredAudit
from foci.audits.compute.blocks import BlockReveal, n_blocks, reveal_blocks
from foci.audits.compute.jobs import ranking_jobs
from foci.audits.compute.merge import assemble, features_digest
from foci.audits.compute.partial import PartialResults
from foci.audits.compute.slide import SlideReveal
from foci.audits.compute.workers import default_workers
from foci.audits.folder.manifest import (
    SlideCounts,
    file_hashes,
    new_manifest,
    now,
    read_manifest,
    versions_of,
    write_manifest,
)
from foci.audits.folder.names import PARTS, SUMMARY, TABLES
from foci.audits.folder.run_key import decided_by
from foci.audits.folder.state import entered, state_of
from foci.audits.settings import AuditSettings
from foci.audits.setup.preflight import admit, check_deterministic
from foci.audits.setup.selectors import described, fit_selectors, on_fitting
from foci.audits.setup.splits import already_seen, split_slides
from foci.backbones import Backbone, fingerprint
from foci.backbones.freezing import eval_mode, home
from foci.bags import Cohort
from foci.errors import FociError
from foci.progress import Progress


def run(
    backbone: Backbone,
    cohort: Cohort,
    settings: AuditSettings,
    out: str | Path,
    *,
    name: str = "model",
    split_seed: int = 0,
    sources: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
    model_notes: Sequence[str] = (),
    trained_on: Collection[str] = (),
    force: bool = False,
    workers: int | None = 1,
    progress: Progress = lambda items, what: items,
    say: Callable[[str], None] = lambda line: None,
) -> StoredAudit:
    """Audit a frozen classifier, or resume an earlier run of the same audit.

    Selectors are fitted on the splits ``train`` and ``val``; then the tiles of every slide in the
    audited split are ranked, revealed and deleted. A slide that cannot be audited is skipped and
    listed. A killed run resumes where it stopped and ends with the same bytes.

    Args:
        backbone: The classifier; the audit runs on its device and leaves it unchanged.
        cohort: The slides; classes in the classifier's order. Labels are optional.
        settings: Rankings, counts, seeds, recipe.
        out: The audit folder.
        name: Display name of the model.
        split_seed: Seed of the patient split, if the cohort has no splits.
        sources: Where model and cohort came from, for the manifest.
        notes: Sentences for the report.
        model_notes: What was assumed when the model was loaded.
        trained_on: Slides that the model was trained on, if known.
        force: Replace another audit in the folder.
        workers: Processes that reveal blocks of slides side by side; None for one per core, where
            every one has at least two blocks. Their number changes no byte.
        progress: Progress bar around every long loop.
        say: Called with every message for the user.

    Raises:
        FociError: If model, cohort and settings do not fit together, the folder holds something
            else or another run is using it, no slide can be audited, the classifier is not
            deterministic, or its weights change during the audit.
    """
    folder = Path(out)
    cohort, settings, changed = admit(backbone, cohort, settings)
    decided = decided_by(backbone, cohort, settings, split_seed)
    versions = versions_of(backbone)
    if state_of(folder, decided, versions, force=force) == "finished":
        return _finished(folder, say)
    check_deterministic(backbone, cohort)
    with entered(folder, decided, versions, force=force) as state:
        if state == "finished":  # by another run, while this one checked the model
            return _finished(folder, say)
        if state == "new":
            manifest = new_manifest(
                backbone, settings, decided,
                name=name, classes=cohort.classes, sources=sources or {}, model_notes=model_notes,
            )  # fmt: skip
            write_manifest(folder, manifest)
        else:
            manifest = read_manifest(folder)
            say(f"{folder}: going on with what is there")

        weights = manifest.backbone.fingerprint
        division = split_slides(cohort, settings, split_seed, progress)
        for slide in division.skipped[len(cohort.skipped) :]:
            say(f"skipped {slide.slide_id}: {slide.skipped}")
        changed = (*changed, *already_seen(division.audited, trained_on))
        for note in (*division.notes[len(cohort.notes) :], *changed):
            say(f"note: {note}")
        parts = PartialResults(folder)
        with eval_mode(backbone):
            selectors = (
                {}
                if division.fitting is None
                else fit_selectors(
                    backbone, division.fitting, settings, folder, progress=progress, say=say
                )
            )
            for note in on_fitting(selectors):
                say(f"note: {note}")
            jobs = ranking_jobs(settings, selectors)
            slides = division.audited.slides
            work = BlockReveal(
                cohort.store, SlideReveal(backbone, settings, cohort.classes), jobs, parts
            )
            blocks = n_blocks(slides, settings.block)
            if workers is None:
                workers = default_workers(blocks, home(backbone)[0])
            if manifest.threads is None:  # a run that goes on keeps those of its first part
                threads = 1 if workers > 1 else torch.get_num_threads()
                manifest = manifest.model_copy(update={"threads": threads})
                write_manifest(folder, manifest)
            reveal_blocks(
                slides, work, workers=workers, threads=manifest.threads, progress=progress, say=say
            )
        if fingerprint(backbone) != weights:
            shutil.rmtree(parts.folder)
            what = "changed while it was audited"
            raise FociError(
                f"backbone {backbone.architecture}", what, "leave it alone and try again"
            )

        wanted = [slide.slide_id for slide in slides]
        assemble(folder, parts, blocks, jobs, wanted, division.skipped)
        audit = StoredAudit(folder)
        summary = _conclude(audit, settings)
        manifest = manifest.model_copy(
            update={
                "slides": SlideCounts(
                    train=division.count("train"),
                    val=division.count("val"),
                    audited=len(audit.slides),
                    skipped=len(audit.skipped),
                ),
                "features_sha256": features_digest(audit.slides),
                "selectors": [described(fitted, folder) for fitted in selectors.values()],
                "notes": [*notes, *model_notes, *division.notes, *changed, *on_fitting(selectors)],
                "answers": _in_short(summary),
                "files": file_hashes(folder),
                "finished": now(),
                "status": "complete",
            }
        )
        write_manifest(folder, manifest)
        shutil.rmtree(parts.folder, ignore_errors=True)
    return replace(StoredAudit.load(folder), _measured=audit._measured)


def _in_short(summary: Summary) -> dict[str, str]:
    """The answers by question, in a few words."""
    answers = summary.answers
    if answers is None:
        return {}
    return {
        "map": answers.map.answer,
        "tiles": answers.tiles.answer,
        "order": answers.order.answer,
    }


def _finished(folder: Path, say: Callable[[str], None]) -> StoredAudit:
    """Open an audit that an earlier run has completed."""
    shutil.rmtree(folder / PARTS, ignore_errors=True)
    say(f"{folder}: this audit is complete, nothing is computed again")
    return StoredAudit.load(folder)


def _conclude(audit: StoredAudit, settings: AuditSettings) -> Summary:
    """Measure every slide once, then write the summary and the CSV tables."""
    measured = audit.measured(settings)
    classes, n_skipped = audit.manifest.classes, len(audit.skipped)
    summary = summarise(measured, audit.curves, classes, settings, audit.tiles(), n_skipped)
    write_whole(audit.folder / SUMMARY, summary.to_json())
    write_tables(audit.folder / TABLES, summary, measured, audit.slides, audit.skipped)
    return summary
